"""A plain replay and a mirrored one of the same run, which must draw the same batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
import torch

from agents.base import TensorBatch
from agents.parts.devices import StagedBatch
from agents.parts.learning import batch_to_device
from learning.mirror.mirror import Mirror, MirrorShape
from learning.mirror.replay import MirroredReplay
from memory.chunks.chunk import ChunkLimits, ChunkShape
from memory.replay.batch import Batch
from memory.replay.priorities import PriorityRule
from memory.replay.replay import Replay
from memory.replay.shape import ReplayShape
from memory.runs.keys import Keys
from memory.server.connection import Client

CPU = torch.device("cpu")
NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=(pytest.mark.gpu, NO_CUDA))]


class Twins(NamedTuple):
    """Given the same, one after the other."""

    plain: Replay
    mirrored: MirroredReplay
    device: torch.device

    def load(self) -> None:
        for replay in self[:2]:
            replay.load()

    def ingest(self) -> None:
        for replay in self[:2]:
            replay.ingest()

    def same_batch(
        self, batch_size: int, beta: float, later_betas: Sequence[float] = (), losses: bool = True
    ) -> Batch:
        """Draw, compare every bit, return losses to both; the mirrored one's batch."""
        expected = self.plain.sample(batch_size, beta, later_betas)
        found = self.mirrored.sample(batch_size, beta, later_betas)
        assert_same(found, expected, self.device)
        assert self.mirrored.drawn_state == self.plain.drawn_state
        new = np.random.default_rng(int(expected.leaf.sum())).random(batch_size)
        for replay in self[:2] if losses else ():
            replay.update(expected.leaf, expected.chunk_id, new)
            replay.write_back()
        return found


def twins(
    client: Client,
    keys: Keys,
    epoch: int,
    capacity: int,
    limits: ChunkLimits,
    chunk: ChunkShape,
    device: str,
    seed: int = 0,
) -> Twins:
    """Both empty, drawing by the same seed."""
    shape = ReplayShape(capacity, chunk.chunk_length, chunk.history_length)
    mirror = Mirror(MirrorShape(shape.slots, chunk, limits), torch.device(device))
    own = [
        (client, keys, shape, epoch, PriorityRule(0.5), np.random.default_rng(seed), None, limits)
        for _ in range(2)
    ]
    return Twins(Replay(*own[0]), MirroredReplay(mirror, *own[1]), torch.device(device))


def is_gathered(batch: Batch) -> bool:
    """Whether its states are on the device alone."""
    return isinstance(batch, StagedBatch) and batch.in_flight is not None and batch.s_tm1.size == 0


def assert_same(found: Batch, expected: Batch, device: torch.device) -> None:
    """Bit by bit: what an agent gets of both, and what else a learner looks at."""
    tensors = zip(
        TensorBatch._fields, batch_to_device(found, device), batch_to_device(expected, CPU), strict=True
    )
    for name, tensor, wanted in tensors:
        assert tensor.device.type == device.type, name
        assert tensor.dtype == wanted.dtype and tensor.shape == wanted.shape, name
        assert tensor.is_contiguous() and tensor.stride() == wanted.stride(), name
        assert tensor.cpu().numpy().tobytes() == wanted.numpy().tobytes(), name
    for name in ("a_tm1", "r_t", "discount_t", "weights", "leaf", "chunk_id"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == other.dtype and one.shape == other.shape, name
        assert one.tobytes() == other.tobytes(), name
    assert found.next_frames is found.step_discounts is found.game is None
