"""Both ends of the road: they depend on where an agent's experience waits; all else is the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from acting.writer import Writer
from agents.base import Agent
from args import Args
from learning.snapshot import Snapshot
from learning.source import Source
from memory.runs.counters import Counters
from memory.runs.episodes import Episode, recent_episodes
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import Pusher
from memory.runs.run import OpenedRun, RunInfo
from memory.server.connection import Client, Patience
from wiring.setting import Setting


@dataclass(frozen=True)
class Seat:
    """An actor's place in an opened run; its lease is held."""

    client: Client
    keys: Keys
    lease: Lease
    run: RunInfo
    find_run: Callable[[], RunInfo | None]  # finds the run again after a learner's end
    reported: deque[Episode] = field(default_factory=recent_episodes)  # by this process in this run


class Outlet(NamedTuple):
    """An actor's end: how experience is packed and pushed, and when the next step may be taken."""

    pusher: Pusher[Any]
    writer: Writer
    may_step: Callable[[Counters], bool]
    weights_every: int  # agent steps between two looks for new weights
    weights_may_come_late: bool = False  # whether the actor need not wait for them


class Store(ABC):
    """Builds both ends of one kind of store."""

    kept: ClassVar[tuple[str, ...]]
    """Parts of a snapshot that a resumed source goes on from."""

    @abstractmethod
    def check(self, args: Args) -> None:
        """Raise UserError where parameters of the store contradict each other."""

    @abstractmethod
    def sentence(self, setting: Setting) -> str:
        """What a new run should know of the memory that it takes in Redis."""

    @abstractmethod
    def source(
        self,
        setting: Setting,
        client: Client,
        keys: Keys,
        opened: OpenedRun,
        snapshot: Snapshot | None,
        patience: Patience,
    ) -> Source[Any]:
        """The learner's end, as far as Redis and the snapshot bring it; says when learning begins."""

    @abstractmethod
    def outlet(self, setting: Setting, agent: Agent, seat: Seat, stopped: Callable[[], bool]) -> Outlet:
        """The actor's end."""
