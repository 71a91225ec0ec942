"""What the folders of results hold of runs: how each was started, and its tables."""

from __future__ import annotations

import fnmatch
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from reporting.tables import LearningPoint, learning_path, read_learning

DEEPEST = 6
"""Levels of folders below --path-to-results that are searched for runs: a benchmark keeps a session's results
so deep.
"""
REST = 200
"""Pause between two readings of a growing table, in multiples of the time that the last one took: 0.5 % of a
core.
"""
LEAST_PAUSE_S = 5.0


class FolderRun(NamedTuple):
    """A run that left `run_<game>.json`."""

    name: str  # as Redis has it
    games: tuple[str, ...]
    settings: dict[str, Any]
    commit: str
    path: Path  # of that file
    place: str  # of its folder, below the root of results
    changed: float  # unix time at which it was written
    began: int  # first epoch of the run; 0 where an earlier version wrote it

    @property
    def episodes(self) -> Path:
        """Its table of episodes."""
        return self.path.with_name(f"{self.path.stem.removeprefix('run_')}.csv")

    @property
    def learning(self) -> Path:
        """Its history of learning."""
        return learning_path(self.episodes)


def find_runs(root: Path) -> Iterator[FolderRun]:
    """All below `root`, the newest first; what cannot be read is left out."""
    for path in sorted(_paths(root), key=_changed, reverse=True):
        if (run := _parsed(path, root)) is not None:
            yield run


def _paths(root: Path) -> Iterator[Path]:
    """Of their files. `os.walk` passes over folders that vanish meanwhile, where `Path.glob` raises."""
    for folder, below, names in os.walk(root, followlinks=True):
        place = Path(folder)
        if len(place.relative_to(root).parts) == DEEPEST:
            below.clear()
        yield from (place / name for name in fnmatch.filter(names, "run_*.json"))


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _parsed(path: Path, root: Path) -> FolderRun | None:
    try:
        document = json.loads(path.read_bytes())
        settings, commit = document["arguments"], document["commit"] or {}
        games = str(settings["game"]).split(",")
        short = [game.rpartition("/")[2] if ".py:" in game else game for game in games]
        name = str(settings["run"] or ",".join(short))
        below = path.parent.relative_to(root)
        place = below.as_posix() if below.parts else path.parent.name
        hashed, changed, began = str(commit.get("hash", "")), _changed(path), int(document.get("began", 0))
        return FolderRun(name, tuple(short), dict(settings), hashed, path, place, changed, began)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class LearningFile:
    """A history of learning that grows, read seldom."""

    def __init__(self, path: Path) -> None:
        self._path, self._size, self._next = path, -1, 0.0
        self.points: list[LearningPoint] = []

    def refresh(self) -> None:
        """Read it again if it has grown and that is due."""
        if time.monotonic() < self._next or not self._path.is_file():
            return
        size, began = _size(self._path), time.monotonic()
        if size == self._size:
            return
        try:
            self.points = [*read_learning(self._path)]
        except (OSError, ValueError):  # moved away, of another program, or of another user
            self.points = []
        took = time.monotonic() - began
        self._size, self._next = size, began + max(REST * took, LEAST_PAUSE_S)
