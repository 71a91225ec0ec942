"""What an actor is given: its place in a run and the link to it, a writer, observers, a source of weights."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from acting.links.weights import ActingWeights, WeightsSource
from acting.player import VectorStep
from memory.runs.counters import Counters
from memory.runs.episodes import recent_episodes
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.reports import Status
from memory.runs.run import RunInfo
from memory.server.connection import Client
from reporting.tables import EpisodeRecord

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ActorConfig:
    """An actor's own parameters, named as the flags."""

    id_actor: int
    game: str  # that it plays
    t_max: int  # agent steps
    end_by: str
    learn_start: int  # agent steps
    log_interval: int  # agent steps
    eval: bool
    post_episode_sleep: float  # seconds
    env_patience: float  # seconds


class Link:
    """What an actor needs of its run; this one is of an actor without a run, which counts its own steps and
    prints its scores. Others may raise LostLease, RunChanged, Interrupted, or a redis error in the end.
    """

    def __init__(self, stopped: Callable[[], bool]) -> None:
        """`stopped`: whether this process was asked to end."""
        self.stopped = stopped
        self.counters = Counters()
        self._episodes = 0

    def refresh_counters(self) -> None:
        """Read how far the run is."""

    def push(self, packets: list[Any], num_transitions: int) -> None:
        """Send the packets of a vector step with so many transitions. Raises errors of earlier ones, too."""
        self.counters = self.counters._replace(steps=self.counters.steps + num_transitions)

    def wait_until_stored(self, are_last: bool = False) -> None:
        """Wait for the reply to the packets that were sent; `are_last`: the actor sends no more."""

    def report(self, episode: EpisodeRecord) -> None:
        """Send a finished episode, which gets its sequence number here."""
        self._episodes += 1
        log.info("Episode %d: score %g in %d steps.", self._episodes, episode.score_saber, episode.length)

    def publish_status(self, values: Status) -> None:
        """Publish the actor's status for the live view."""


class RunChanged(RuntimeError):
    """The learner began anew with other settings or an empty replay: the actor must be built again."""


@dataclass(frozen=True)
class ActorSlot:
    """An actor's place in an opened run; its lease is held."""

    client: Client
    keys: Keys
    lease: Lease
    run: RunInfo
    find_run: Callable[[], RunInfo | None]  # finds the run again after the learner restarted
    reported: deque[EpisodeRecord] = field(default_factory=recent_episodes)  # by this process in this run


class Writer(ABC):
    """Turns vector steps into packets for Redis."""

    weights_may_change = True
    """Whether the next step may be played with other weights than the last one."""

    def weights_changed(self, weights: ActingWeights) -> None:  # noqa: B027 - most need not know
        """From now on steps are played with these weights."""

    @abstractmethod
    def add(self, step: VectorStep) -> list[Any]:
        """Add a vector step; returns the packets that it completed."""

    @abstractmethod
    def flush(self, frames: NDArray[Any]) -> list[Any]:
        """The packets that are left when the actor stops before `frames` [N, *frame]."""

    def state_dict(self) -> dict[str, Any] | None:
        """What was not handed out yet; None where it cannot be saved."""
        return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - where there is none
        """Continue from `state_dict()`."""


class StepObserver(Protocol):
    """Sees every step of an actor: the event log, a window."""

    def add(self, step: VectorStep) -> None:
        """A vector step was taken."""

    def close(self, frames: NDArray[Any]) -> None:
        """The actor has ended before `frames` [N, *frame]."""


class Exchange(NamedTuple):
    """What an actor takes from the learner and gives to it."""

    weights: WeightsSource | None = None  # None: the agent has none, or keeps those it has
    writer: Writer | None = None  # None: no experience leaves this process
    may_step: Callable[[Counters], bool] = lambda counters: True  # whether the learner has kept up
