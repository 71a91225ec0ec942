"""Where an actor's weights come from: published through Redis, or snapshots in a folder."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from safetensors.torch import load as load_tensors
from torch import Tensor

from learning.snapshot import SnapshotError, last_models, load_snapshot
from memory.runs.weights import WeightsError, WeightsReader
from memory.server.connection import Patience

log = logging.getLogger(__name__)


class ActingWeights(NamedTuple):
    """What an agent acts with, and when they were made."""

    tensors: Mapping[str, Tensor]
    t_learner: int  # the learner's step
    updates: int
    epoch: int  # of the learner; 0 where they come from disk


def checked_tensors(payload: bytes) -> dict[str, Tensor]:
    """Tensors from safetensors; raises WeightsError where it is damaged or a weight is not finite."""
    try:
        tensors = load_tensors(payload)
    except Exception as error:  # safetensors raises many kinds for damaged bytes
        raise WeightsError(f"The stored weights cannot be read: {error}.") from error
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise WeightsError("A stored weight is not finite.")
    return tensors


class WeightsSource(Protocol):
    """Looked at before every vector step."""

    def poll(self, steps: int, episode_begins: bool) -> ActingWeights | None:
        """Weights to act with from here on, or None to go on with those at hand.

        `steps`: those of this actor so far; `episode_begins`: whether one does in any environment.
        """

    def state_dict(self) -> dict[str, Any] | None:
        """When it looks next and what it has seen; None where that cannot be saved."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""

    def close(self) -> None:
        """Nobody will look any more."""


class PublishedWeights:
    """Those in Redis, looked for every `every_steps` steps of the actor."""

    def __init__(
        self, reader: WeightsReader, every_steps: int, patience: Patience, each_episode: bool = False
    ) -> None:
        """`each_episode`: look at the beginning of each episode too, for actors that rest between them."""
        self._reader, self._every_steps, self._patiently = reader, every_steps, patience
        self._each_episode = each_episode
        self._next_poll = 0

    def poll(self, steps: int, episode_begins: bool) -> ActingWeights | None:
        """The published weights if they changed."""
        return self.fetch(steps) if self.is_due(steps, episode_begins) else None

    def is_due(self, steps: int, episode_begins: bool) -> bool:
        """Whether to look for them now."""
        return steps >= self._next_poll or (self._each_episode and episode_begins)

    def fetch(self, steps: int) -> ActingWeights | None:
        """Look for them, and take them if they changed; the next look is due `every_steps` after `steps`."""
        self._next_poll = steps + self._every_steps
        weights = self._patiently(self._reader.poll)
        if weights is None:
            return None
        tensors = checked_tensors(weights.payload)
        return ActingWeights(tensors, weights.t_learner, weights.updates, weights.epoch)

    def state_dict(self) -> dict[str, Any]:
        """The version at hand, and the step of the next look."""
        return {"seen": self._reader.seen, "next_poll": self._next_poll}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""
        self._reader.seen, self._next_poll = state["seen"], state["next_poll"]

    def close(self) -> None:
        """Nothing is held."""


class SnapshotWeights:
    """The newest last_model snapshot of a folder, looked for at the beginning of each episode."""

    def __init__(self, folder: Path, file_name: str) -> None:
        self._folder, self._file_name = folder, file_name
        self._seen: tuple[Path, float] | None = None

    def poll(self, steps: int, episode_begins: bool) -> ActingWeights | None:
        """The newest snapshot's weights, if there is a newer one than last time."""
        if not episode_begins:
            return None
        try:
            return self._newest()
        except (SnapshotError, OSError) as error:  # it may be replaced while it is read
            log.warning("%s Going on with the weights at hand.", error)
            return None

    def state_dict(self) -> None:
        """The folder may hold anything when the actor goes on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """There is none."""

    def close(self) -> None:
        """Nothing is held."""

    def _newest(self) -> ActingWeights | None:
        paths = last_models(self._folder, self._file_name)
        if not paths:
            return None
        found = (paths[0], paths[0].stat().st_mtime)
        if found == self._seen:
            return None
        snapshot = load_snapshot(paths[0])
        self._seen = found
        log.debug("Read %s.", paths[0])
        return ActingWeights(
            snapshot["acting_weights"], int(snapshot["t_learner"]), int(snapshot["updates"]), 0
        )
