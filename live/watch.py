"""All runs that the page knows: those of the server, and those of the folder of results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import redis
from numpy.typing import NDArray

from live.curves import ScoreCurves
from live.estimator import Estimator, NoEstimate
from live.folders import FolderRun, LearningFile, find_runs
from live.moments import RecentMoments
from live.reading import ReadOnlyClient, ServerRun, read_run, sampled_priorities
from live.sight import SeenChunk, newest_seen
from memory.runs.keys import Keys
from memory.runs.run import run_names
from memory.server.connection import RedisConfig, make_client
from memory.server.replies import UNREACHABLE, refusals_as_outages

Result = TypeVar("Result")

LOOK_EVERY_S = 2.5
"""Shortest time (seconds) between two reads of statuses and episodes, for all browsers together."""
LIST_EVERY_S = 15.0
"""Shortest time (seconds) between two listings of runs: each scans all keys in Redis, and the folders."""
RETRY_AFTER_S = 10.0
AWAY = (*UNREACHABLE, redis.exceptions.InvalidResponse)


class KnownRun:
    """One run, on the server, in a folder, or both."""

    def __init__(self, name: str, server: ServerRun | None, folder: FolderRun | None) -> None:
        self.name, self.server, self.folder = name, server, folder
        self.scores, self.moments = ScoreCurves(self.games), RecentMoments()
        self.learning = None if folder is None else LearningFile(folder.learning)
        self.estimator: Estimator | None = None
        self._is_loaded = folder is None

    def load(self) -> None:
        """Take in what the folder holds."""
        if self.folder is not None and not self._is_loaded:
            self._is_loaded = True
            self.scores = ScoreCurves(self.games)  # the stream, read again, adds newer ones
            self.scores.read_table(self.folder.episodes)
        if self.learning is not None:
            self.learning.refresh()

    @property
    def settings(self) -> dict[str, Any]:
        """Those in Redis; others, as the seed, from the folder."""
        published = {} if self.server is None else self.server.info.settings
        return {**({} if self.folder is None else self.folder.settings), **published}

    @property
    def games(self) -> tuple[str, ...]:
        """That it plays."""
        if self.server is not None:
            return tuple(str(self.server.info.settings.get("game")).split(","))
        return () if self.folder is None else self.folder.games

    @property
    def label(self) -> str:
        """Its name; with the folder's where it is on disk alone."""
        if self.server is not None or self.folder is None:
            return self.name
        return f"{self.name} · {self.folder.place}"

    def is_same(self, found: KnownRun) -> bool:
        """Whether it is the run that was found again, and not another of the same name."""
        began, now = (None if run.server is None else run.server.info.began for run in (self, found))
        return began == now and self.folder == found.folder


class Watch:
    """Whoever uses it holds `lock`: web servers have many threads."""

    def __init__(self, config: RedisConfig, root: Path | None) -> None:
        """`root`: of results; None: the server alone."""
        self.address, self.lock = str(config), threading.RLock()
        self.trouble = ""
        """Why Redis could not be read at the last look; empty where it could."""
        self._client = ReadOnlyClient(make_client(config))
        self._root, self._runs = root, dict[str, KnownRun]()
        self._names, self._folders = list[str](), list[FolderRun]()
        self._look_at, self._list_at, self._is_away = 0.0, 0.0, False

    @property
    def runs(self) -> list[KnownRun]:
        """Those on the server first."""
        return list(self._runs.values())

    def find(self, labels: Iterable[str]) -> list[KnownRun]:
        """Runs by their labels, those that there still are, with what their folders hold."""
        found = [run for label in labels if (run := self._runs.get(label)) is not None]
        for run in found:
            run.load()
        return found

    def look(self) -> None:
        """Ask Redis and folders for what is new, if that is due."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        self.trouble, self._is_away = "", False
        if now >= self._list_at:
            self._list_at = now + LIST_EVERY_S
            self._folders = [] if self._root is None else [*find_runs(self._root)]
            names = self._asked(run_names, self._client)
            self._names = self._names if names is None else names
        found = {name: self._asked(read_run, self._client, name) for name in self._names}
        if self.trouble:  # what was known stays
            found = {run.name: run.server for run in self._runs.values() if run.server is not None}
        self._join({name: run for name, run in found.items() if run is not None})
        for run in self._runs.values():
            if run.server is not None:
                run.moments.add(run.server)
                self._asked(run.scores.read_stream, self._client, Keys(run.name))

    def priorities(self, run: KnownRun) -> NDArray[np.float32]:
        """Some of its replay."""
        found = None if run.server is None else self._asked(sampled_priorities, self._client, Keys(run.name))
        return np.empty(0, np.float32) if found is None else found

    def seen(self, run: KnownRun, actor: int | None) -> SeenChunk | None:
        """What an actor of the run, or any, pushed last."""
        history = run.settings.get("history_length")
        if run.server is None or not isinstance(history, int) or not history:  # 0: each game has its own
            return None
        last = run.server.counters.last_chunk
        return self._asked(newest_seen, self._client, Keys(run.name), last, actor, history)

    def quantiles(self, run: KnownRun, seen: SeenChunk) -> NDArray[np.float32]:
        """By the run's published weights, as `Estimator.quantiles`. Raises NoEstimate."""
        assert run.server is not None
        if run.estimator is None or run.estimator.epoch != run.server.info.epoch:
            run.estimator = Estimator(self._client, run.name, run.server)
        found = self._asked(run.estimator.quantiles, seen, run.scores.num_actions)
        if found is None:
            raise NoEstimate(self.trouble)
        return found

    def _join(self, found: dict[str, ServerRun]) -> None:
        """Keep what is known of runs that are still there."""
        folders = {name: _folder_of(name, run, self._folders) for name, run in found.items()}
        there = [KnownRun(name, run, folders[name]) for name, run in found.items()]
        alone = (folder for folder in self._folders if folder not in folders.values())
        there += [KnownRun(folder.name, None, folder) for folder in alone]
        runs = dict[str, KnownRun]()
        for run in there:
            known = self._runs.get(run.label)
            if known is not None and known.is_same(run):
                known.server, run = run.server, known
            runs.setdefault(run.label, run)
        self._runs = runs

    def _asked(self, question: Callable[..., Result], *arguments: object) -> Result | None:
        """The answer; None where there is none, and why in `trouble`. Nothing is asked while it is away."""
        if self._is_away:
            return None
        try:
            with refusals_as_outages():
                return question(*arguments)
        except (*AWAY, redis.exceptions.ResponseError) as error:
            self.trouble = f"Redis at {self.address} cannot be read: {error}"
            if isinstance(error, AWAY):  # else other questions may be answered
                self._is_away, self._look_at = True, time.monotonic() + RETRY_AFTER_S
            return None


def _folder_of(name: str, run: ServerRun, folders: Iterable[FolderRun]) -> FolderRun | None:
    """The one that the run's learner wrote to, which says of which run it is; an earlier version's says only
    when it was written, which is after the run was opened.
    """

    def is_of_it(folder: FolderRun) -> bool:
        if folder.began and run.info.began:
            return folder.began == run.info.began
        return folder.changed * 1000 >= run.info.epoch

    return next((each for each in folders if each.name == name and is_of_it(each)), None)
