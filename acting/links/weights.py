"""Where an actor's weights come from: published through Redis, or snapshots in a folder."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import load as load_tensors
from torch import Tensor

from learning.saved.snapshot import SnapshotError, load_snapshot
from memory.runs.keys import Keys
from memory.runs.weights import Weights, WeightsError, parse_weights
from memory.server.connection import Client
from memory.server.patience import Patience
from reporting.model_files import last_models

log = logging.getLogger(__name__)


class ActingWeights(NamedTuple):
    """Weights to act with, and the learner's clock when it published them."""

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
    """Where new weights come from; asked before a vector step."""

    next_look: float = 0
    """The actor's step from which on to `poll`; that is done whenever an episode begins, too."""

    @abstractmethod
    def poll(self, steps: int, episode_begins: bool) -> ActingWeights | None:
        """New weights to act with, or None to keep the present ones.

        Args:
            steps: of this actor so far.
            episode_begins: whether one does in any environment.
        """

    def has_some(self) -> bool:
        """Whether there are weights to begin with; True where the agent may as well begin with its own."""
        return True

    def state_dict(self) -> dict[str, Any] | None:
        """When it looks next and what it has seen; None where that depends on time or on other files."""
        return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - where there is none
        """Continue from `state_dict()`."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Release what it holds."""


class WeightsReader:
    """Fetches weights when their version has changed (not only when it grew: a snapshot may roll it back)."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client, self._keys = client, keys
        self.seen: bytes | None = None  # version of those returned last

    def poll(self) -> Weights | None:
        """The weights if they are others than those returned last, else None. Raises WeightsError."""
        version = self.version()
        if version is None or version == self.seen:
            return None
        if (weights := self._read(version)) is not None:
            self.seen = weights.version
        return weights

    def version(self) -> bytes | None:
        """Of those that are published; None where none are."""
        version: bytes | None = self._client.get(self._keys.weights_version)
        return version

    def _read(self, version: bytes) -> Weights | None:
        """Those of Redis, of this version or of a later one."""
        data = self._client.get(self._keys.weights)
        return None if data is None else parse_weights(data)


class PublishedWeights(WeightsSource):
    """Weights published in Redis, looked for every `every_steps` steps of the actor.

    In the background, a thread fetches, checks and decodes them while acting continues. Before which vector
    step they arrive then depends on time, so a run that must be repeatable waits for them instead.
    """

    def __init__(
        self,
        reader: WeightsReader,
        every_steps: int,
        patience: Patience,
        each_episode: bool = False,
        in_background: bool = False,
    ) -> None:
        """`each_episode`: look at the beginning of each episode too, for actors that rest between them."""
        self._reader, self._every_steps, self._patience = reader, every_steps, patience
        self._each_episode = each_episode
        self._thread = ThreadPoolExecutor(1, "weights") if in_background else None
        self._fetching: Future[ActingWeights | None] | None = None
        self._due_at = 0  # the actor's step of the next look
        self._has_begun = False

    def poll(self, steps: int, episode_begins: bool) -> ActingWeights | None:
        """The published weights if they changed, once they are here. Raises what ended a fetch.

        The first call waits for them: else the actor would begin with weights that nobody published.
        """
        if self._fetching is not None:
            if not self._fetching.done():
                return None
            arrived, self._fetching, self.next_look = self._fetching, None, self._due_at
            return arrived.result()
        if steps < self._due_at and not (self._each_episode and episode_begins):
            return None
        self._due_at = self.next_look = steps + self._every_steps
        if self._thread is None or not self._has_begun:
            self._has_begun = True
            return self._fetch()
        self._fetching, self.next_look = self._thread.submit(self._fetch), 0
        return None

    def has_some(self) -> bool:
        """Whether the learner has published any."""
        return self._patience(self._reader.version) is not None

    def _fetch(self) -> ActingWeights | None:
        weights = self._patience(self._reader.poll)
        if weights is None:
            return None
        tensors = checked_tensors(weights.payload)
        return ActingWeights(tensors, weights.t_learner, weights.updates, weights.epoch)

    def state_dict(self) -> dict[str, Any] | None:
        """The version at hand, and the step of the next look."""
        if self._thread is not None:
            return None
        return {"seen": self._reader.seen, "next_poll": self._due_at}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self._reader.seen, self._due_at = state["seen"], state["next_poll"]
        self.next_look = self._due_at

    def close(self) -> None:
        """Let the thread end, without waiting for its fetch."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)


class SnapshotWeights(WeightsSource):
    """The newest last_model snapshot of a folder, looked for at the beginning of each episode."""

    def __init__(self, folder: Path, file_name: str) -> None:
        self._folder, self._file_name = folder, file_name
        self.next_look = math.inf  # but when an episode begins
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
