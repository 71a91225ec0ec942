"""The learner's side of where experience waits: it differs between a replay and rollouts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from args import Args
from learning.snapshot import Snapshot
from learning.source import Source
from memory.runs.keys import Keys
from memory.runs.run import OpenedRun
from memory.server.connection import Client, Patience
from wiring.setting import Setting


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
