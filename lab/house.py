"""The folder of the lab: one lab at a time in it, and stopping it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from args import UserError
from lab.names import LOCK, PROCESS
from lab.process import end, lives, started_at
from lab.records import read_whole
from lab.session import known_record, read_record
from reporting.atomic import write_atomically

DEFAULT = Path("results/lab")
PATIENCE_S = 90.0
"""From SIGTERM to SIGKILL: a session's own supervisor gives its learner 60 s to save."""


@dataclass(frozen=True)
class Holder:
    """Who holds the folder, or held it last: `lab.json`."""

    pid: int
    began: int


def command_for(name: str, root: Path) -> str:
    """What a user types to act on the lab in that folder."""
    return f"python run_lab.py {name}" if root == DEFAULT else f"python run_lab.py {name} --results {root}"


def make_root(root: Path) -> None:
    """Make the folder of the lab. Raises UserError where it cannot be."""
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Nothing can be written to {root} ({error.strerror}): check --results.") from error


@contextlib.contextmanager
def only_lab(root: Path) -> Iterator[None]:
    """Hold the folder. Raises UserError where another lab does."""
    make_root(root)
    with (root / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"Another lab runs in {root}: see it with `{command_for('attach', root)}`, end it with"
                f" `{command_for('stop', root)}`, or name another --results."
            ) from error
        pid = os.getpid()
        write_atomically(root / PROCESS, json.dumps(asdict(Holder(pid, started_at(pid)))).encode())
        yield


def lab_process(root: Path) -> tuple[int, int] | None:
    """Number and start of the lab that runs in the folder, or None. Raises UserError."""
    holder = read_whole(root / PROCESS, Holder, "once no lab runs there")
    return (holder.pid, holder.began) if holder and lives(holder.pid, holder.began) else None


def session_folders(root: Path) -> list[Path]:
    """Folders of all sessions: <experiment>/<mode>/<trial>/session_<number>."""
    return sorted(root.glob("*/*/*/session_*"))


def stop_lab(root: Path, patience_s: float = PATIENCE_S) -> int:
    """End the lab and sessions that outlived it, by their recorded numbers; how many processes that were.

    Raises UserError for a damaged record, once all others are ended.
    """
    process = lab_process(root)
    ended = end(*process, patience_s) if process else False
    folders = session_folders(root)
    sessions = end_sessions(folders, patience_s)
    for folder in folders:
        read_record(folder)
    return ended + sessions


def end_sessions(folders: Iterable[Path], patience_s: float = PATIENCE_S) -> int:
    """End those that outlived whoever started them; how many processes that were."""
    records = [known_record(folder) for folder in folders]
    return sum(end(record.pid, record.began, patience_s) for record in records)
