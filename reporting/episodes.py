"""The table of episodes of one run: one tidy csv row per finished episode."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reporting.atomic import append, csv_bytes, read_rows, write_atomically


class EpisodeRecord(NamedTuple):
    """One finished episode; `(actor, sequence)` names it within its run."""

    actor: int
    sequence: int  # counts the episodes of this actor
    environment: int  # place in the actor's vector of environments
    actor_steps: int  # agent steps of all actors together when the episode ended
    learner_steps: int  # T_learner, in agent steps, when the episode ended
    score_5min: float  # raw score within the first 5 minutes of play
    score_30min: float
    score_saber: float  # raw score of the whole episode
    length: int  # agent steps
    evaluation: bool = False  # played without noise by an evaluation actor
    action_counts: Sequence[Sequence[int]] = ()
    """Of each action, or of equal parts of the range of each component of a continuous one; may be empty."""
    rooms: Sequence[int] = ()  # that it visited, where the game reports them
    game: str = ""  # "" in tables of earlier versions, whose runs had one
    agent: int = 0  # which learning agent of the run; there is one so far


HEADER = (
    "actor",
    "sequence",
    "environment",
    "actor_agent_steps",
    "learner_agent_steps",
    "score_5min_points",
    "score_30min_points",
    "score_saber_points",
    "length_agent_steps",
    "evaluation",
    "action_counts",
    "rooms",
    "game",
    "agent",
)
_REQUIRED = len(HEADER) - len(EpisodeRecord._field_defaults)
"""Columns were only ever added at the end: tables of earlier versions lack the last ones."""


def by_purpose(records: Iterable[EpisodeRecord]) -> tuple[list[EpisodeRecord], list[EpisodeRecord]]:
    """Training episodes, and evaluation episodes, each in the order of `records`."""
    parts: tuple[list[EpisodeRecord], list[EpisodeRecord]] = ([], [])
    for record in records:
        parts[record.evaluation].append(record)
    return parts


class EpisodeTable:
    """Owner of `<game>.csv`: appends each episode once, however often it is handed in.

    Opening reads the rows that are there. A last line without its end, left by a process that was killed
    while writing, is cut off: its record counts as not written. A table of an earlier version gets the
    columns that it lacks.

    Raises:
      ValueError: the file is not a table of episodes, or a line of it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records = _mended(path)
        self._known = {record[:2] for record in self._records}  # (actor, sequence)

    @property
    def records(self) -> Sequence[EpisodeRecord]:
        """Every episode of the run, in the order written."""
        return self._records

    def add(self, records: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
        """Appends the episodes that are not in the table yet, and returns those."""
        fresh = {record[:2]: record for record in records if record[:2] not in self._known}
        new = list(fresh.values())
        if new:
            append(self._path, csv_bytes(map(_cells, new)))
            self._records.extend(new)
            self._known.update(fresh)
        return new


def read_episodes(path: Path) -> list[EpisodeRecord]:
    """The whole rows of a table that may be growing meanwhile; the file, if any, stays as it is.

    Raises ValueError as EpisodeTable does.
    """
    header, *rows = read_rows(path) or [[*HEADER]]
    if len(header) < _REQUIRED or tuple(header) != HEADER[: len(header)]:
        raise ValueError(f"{path} is no table of episodes of this program; move it away to begin a new one.")
    return [_parse(path, line, row, len(header)) for line, row in enumerate(rows, start=2)]


def _mended(path: Path) -> list[EpisodeRecord]:
    """What the table holds, once it has its header and nothing but whole rows."""
    records = read_episodes(path)
    data = path.read_bytes() if path.exists() else b""
    if not data.endswith(b"\n") or data.partition(b"\n")[0].decode(errors="replace") != ",".join(HEADER):
        write_atomically(path, csv_bytes([HEADER, *map(_cells, records)]))
    return records


def _parse(path: Path, line: int, row: Sequence[str], columns: int) -> EpisodeRecord:
    try:
        return EpisodeRecord(*(read(cell) for read, cell in zip(_READERS[:columns], row, strict=True)))
    except ValueError as error:
        raise ValueError(f"Line {line} of {path} is not an episode: {','.join(row)!r}.") from error


def _flag(cell: str) -> bool:
    return bool(int(cell))


def _counts(cell: str) -> list[list[int]]:
    """ "3 0 7|1 9 0" is [[3, 0, 7], [1, 9, 0]]."""
    return [[int(count) for count in part.split(" ")] for part in cell.split("|")] if cell else []


def _rooms(cell: str) -> list[int]:
    return [int(room) for room in cell.split()]


_READERS: tuple[Callable[[str], Any], ...] = (*[int] * 5, *[float] * 3, int, _flag, _counts, _rooms, str, int)


def _cells(record: EpisodeRecord) -> list[object]:
    counts = "|".join(" ".join(map(str, part)) for part in record.action_counts)
    rooms = " ".join(map(str, record.rooms))
    return [*record[:_REQUIRED], int(record.evaluation), counts, rooms, record.game, record.agent]
