"""Where an actor's weights come from: published through Redis, or snapshots in a folder."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import load as load_tensors
from torch import Tensor

from learning.snapshot import SnapshotError, last_models, load_snapshot
from memory.runs.weights import WeightsError, WeightsReader
from memory.server.connection import Patience

log = logging.getLogger(__name__)


class ActingWeights(NamedTuple):
    """What an agent acts with, and when it was learned."""

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


class WeightsSource(ABC):
    """Asked before every vector step."""

    @abstractmethod
    def poll(self, steps: int, episode_begins: bool) -> ActingWeights | None:
        """New weights to act with, or None to keep the present ones.

        Args:
          steps: of this actor so far.
          episode_begins: whether one does in any environment.
        """

    def state_dict(self) -> dict[str, Any] | None:
        """When it looks next and what it has seen; None where that depends on time or on other files."""
        return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - where there is none
        """Continue from `state_dict()`."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Release what it holds."""


class PublishedWeights(WeightsSource):
    """Those in Redis, looked for every `every_steps` steps of the actor."""

    def __init__(
        self, reader: WeightsReader, every_steps: int, patience: Patience, each_episode: bool = False
    ) -> None:
        """`each_episode`: look at the beginning of each episode too, for actors that rest between them."""
        self._reader, self._every_steps, self._patiently = reader, every_steps, patience
        self._each_episode = each_episode
        self._next_poll = 0

    def poll(self, steps: int, episode_begins: bool) -> ActingWeights | None:
        """The published weights if they changed since the last call."""
        return self.fetch(steps) if self.is_due(steps, episode_begins) else None

    def is_due(self, steps: int, episode_begins: bool) -> bool:
        """Whether to look for them now."""
        return steps >= self._next_poll or (self._each_episode and episode_begins)

    def fetch(self, steps: int) -> ActingWeights | None:
        """Fetch them if they changed; the next look is due `every_steps` after `steps`."""
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
        """Continue from `state_dict()`."""
        self._reader.seen, self._next_poll = state["seen"], state["next_poll"]


class BackgroundWeights(WeightsSource):
    """`PublishedWeights` that are fetched, checked and decoded by a thread, while acting continues.

    The actor takes them before its next vector step. Which step that is depends on time, so a run that must
    be repeatable uses `PublishedWeights` itself.
    """

    def __init__(self, published: PublishedWeights) -> None:
        """`published` is used by this object alone from here on."""
        self._published = published
        self._thread = ThreadPoolExecutor(1, "weights")
        self._fetch: Future[ActingWeights | None] | None = None
        self._has_begun = False

    def poll(self, steps: int, episode_begins: bool) -> ActingWeights | None:
        """New weights that have arrived. Raises what ended a fetch.

        The first call waits for them: else the actor would begin with weights that nobody published.
        """
        if self._fetch is not None:
            return self._arrived(self._fetch)
        if not self._published.is_due(steps, episode_begins):
            return None
        if not self._has_begun:
            self._has_begun = True
            return self._published.fetch(steps)
        self._fetch = self._thread.submit(self._published.fetch, steps)
        return None

    def _arrived(self, fetch: Future[ActingWeights | None]) -> ActingWeights | None:
        if not fetch.done():
            return None
        self._fetch = None
        return fetch.result()

    def close(self) -> None:
        """Let the thread end, without waiting for its fetch."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class SnapshotWeights(WeightsSource):
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
            log.warning("%s Continuing with the present weights.", error)
            return None

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
        weights = snapshot["acting_weights"]
        return ActingWeights(weights, int(snapshot["t_learner"]), int(snapshot["updates"]), epoch=0)
