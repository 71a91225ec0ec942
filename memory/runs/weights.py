"""Weights through Redis, as bytes: one value with a header, and a small version key that actors poll."""

from __future__ import annotations

import struct
from typing import NamedTuple

from isal.isal_zlib import crc32

from memory.runs.keys import Keys
from memory.runs.scripts import PUBLISH_WEIGHTS, ReplayLost
from memory.server.connection import Client

_HEADER = struct.Struct("<2sHIQQQ")
MAGIC, VERSION = b"RW", 1


class WeightsError(ValueError):
    """What should be weights is not what `publish_weights` wrote."""


class Weights(NamedTuple):
    """Published weights; (epoch, updates) is their version."""

    epoch: int
    updates: int  # updates of the agent so far
    t_learner: int  # the learner's step
    payload: bytes  # safetensors

    @property
    def version(self) -> bytes:
        """What the version key holds."""
        return f"{self.epoch}:{self.updates}".encode()


def publish_weights(client: Client, keys: Keys, weights: Weights) -> None:
    """Set value and version in one step, so that no reader sees one without the other. Raises ReplayLost."""
    names = keys.counters, keys.weights, keys.weights_version
    arguments = weights.epoch, packed_weights(weights), weights.version
    if not client.eval(PUBLISH_WEIGHTS, len(names), *names, *arguments):
        raise ReplayLost(f"Epoch {weights.epoch} is over: another learner has begun, or Redis was emptied.")


def packed_weights(weights: Weights) -> bytes:
    """As they are stored: a header with their checksum, then the payload."""
    checksum = crc32(weights.payload)
    header = _HEADER.pack(MAGIC, VERSION, checksum, weights.epoch, weights.updates, weights.t_learner)
    return header + weights.payload


def parse_weights(data: bytes) -> Weights:
    """Weights from the stored value; raises WeightsError when damaged."""
    if len(data) < _HEADER.size:
        raise WeightsError("The stored weights are too short.")
    magic, version, checksum, epoch, updates, t_learner = _HEADER.unpack_from(data)
    payload = data[_HEADER.size :]
    if (magic, version) != (MAGIC, VERSION) or crc32(payload) != checksum:
        raise WeightsError("The stored weights are damaged or of another format.")
    return Weights(epoch, updates, t_learner, payload)
