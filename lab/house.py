"""The folder of the lab: one lab at a time in it, stopping it, and removing what is left."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from args import UserError
from lab.process import end, lives, started_at
from lab.session import read_record
from reporting.atomic import write_atomically

DEFAULT = Path("results/lab")
PATIENCE_S = 90.0
"""From SIGTERM to SIGKILL: a session's own supervisor gives its learner 60 s to save."""


def command_for(name: str, root: Path) -> str:
    """What a user types to act on the lab in that folder."""
    return f"python run_lab.py {name}" if root == DEFAULT else f"python run_lab.py {name} --results {root}"


@contextlib.contextmanager
def only_lab(root: Path) -> Iterator[None]:
    """Hold the folder. Raises UserError where another lab does."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lab.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"Another lab runs in {root}: see it with `{command_for('attach', root)}`, end it with"
                f" `{command_for('stop', root)}`, or name another --results."
            ) from error
        pid = os.getpid()
        write_atomically(root / "lab.json", json.dumps({"pid": pid, "began": started_at(pid)}).encode())
        yield


def lab_process(root: Path) -> tuple[int, int] | None:
    """Number and start of the lab that runs in the folder, or None."""
    path = root / "lab.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"pid": 0, "began": 0}
    process = int(record["pid"]), int(record["began"])
    return process if lives(*process) else None


def session_folders(root: Path) -> list[Path]:
    """Folders of all sessions: <experiment>/<mode>/<trial>/session_<number>."""
    return sorted(root.glob("*/*/*/session_*"))


def stop_lab(root: Path, patience_s: float = PATIENCE_S) -> int:
    """End the lab and sessions that outlived it, by their recorded numbers; how many processes that were."""
    process = lab_process(root)
    ended = end(*process, patience_s) if process else False
    return ended + end_sessions(session_folders(root), patience_s)


def end_sessions(folders: Iterable[Path], patience_s: float = PATIENCE_S) -> int:
    """End those that outlived whoever started them; how many processes that were."""
    records = [read_record(folder) for folder in folders]
    return sum(end(record.pid, record.began, patience_s) for record in records)


def unfinished(root: Path) -> list[Path]:
    """Folders of sessions that are not done."""
    return [folder for folder in session_folders(root) if not read_record(folder).is_done]


def remove(folders: list[Path], root: Path) -> None:
    """Remove folders of the lab. Raises UserError while a lab runs there."""
    if lab_process(root):
        raise UserError(f"A lab runs in {root}: stop it first with `{command_for('stop', root)}`.")
    for folder in folders:
        shutil.rmtree(folder)
