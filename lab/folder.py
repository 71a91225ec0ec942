"""The folder of a lab: one lab at a time in it, in a terminal or detached; its processes and their end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from args import UserError
from lab.files import LOCK, LOG, PROCESS, command_for, read_whole
from lab.session import known_record, read_record
from reporting.atomic import write_atomically

POLL_EVERY_S = 0.1
"""Seconds between two looks at a process or its log (our choice)."""
PATIENCE_S = 90.0
"""Seconds from SIGTERM to SIGKILL: a session's own supervisor gives its learner 60 s to save."""


def started_at(pid: int) -> int:
    """Start of a living process in clock ticks since boot (proc(5), stat's field 22); 0 if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    state, *fields = stat.rpartition(")")[2].split()
    return 0 if state == "Z" else int(fields[18])


def is_alive(pid: int, began: int) -> bool:
    """Whether that very process still runs."""
    return pid > 0 and began > 0 and started_at(pid) == began


def end(pid: int, began: int, patience_s: float = PATIENCE_S) -> bool:
    """SIGTERM, and after `patience_s` SIGKILL for it and its group; returns whether it was alive."""
    if not is_alive(pid, began):
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while is_alive(pid, began) and time.monotonic() < deadline:
        time.sleep(POLL_EVERY_S)
    if is_alive(pid, began):
        _kill(pid)
    return True


def _kill(pid: int) -> None:
    """The process, and its group where it leads one."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:  # it leads none, or has just ended
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class LabHolder:
    """Who holds the folder, or held it last: `lab.json`."""

    pid: int
    began: int


def _opened(root: Path, name: str) -> IO[bytes]:
    """An empty file in the folder of the lab, which is made. Raises UserError where it cannot be."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        return (root / name).open("wb")
    except OSError as error:
        raise UserError(f"Nothing can be written to {root} ({error.strerror}): check --results.") from error


@contextlib.contextmanager
def only_lab(root: Path) -> Iterator[None]:
    """Hold the folder. Raises UserError where another lab does."""
    with _opened(root, LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"Another lab runs in {root}: see it with `{command_for('attach', root)}`, end it with"
                f" `{command_for('stop', root)}`, or name another --results."
            ) from error
        pid = os.getpid()
        write_atomically(root / PROCESS, json.dumps(asdict(LabHolder(pid, started_at(pid)))).encode())
        yield


def lab_process(root: Path) -> LabHolder | None:
    """The lab that runs in the folder, or None. Raises UserError."""
    holder = read_whole(root / PROCESS, LabHolder, "once no lab runs there")
    return holder if holder and is_alive(holder.pid, holder.began) else None


def session_folders(root: Path) -> list[Path]:
    """Folders of all sessions: <experiment>/<mode>/<trial>/session_<number>."""
    return sorted(root.glob("*/*/*/session_*"))


def stop_lab(root: Path) -> int:
    """End the lab and sessions that outlived it, by their recorded numbers; how many processes that were.

    Raises UserError for a damaged record, once all others are ended.
    """
    holder = lab_process(root)
    ended = holder is not None and end(holder.pid, holder.began)
    folders = session_folders(root)
    sessions = end_sessions(folders)
    for folder in folders:
        read_record(folder)
    return ended + sessions


def end_sessions(folders: Iterable[Path]) -> int:
    """End sessions that outlived the process that started them; returns how many."""
    records = [known_record(folder) for folder in folders]
    return sum(end(record.pid, record.began) for record in records)


LAUNCHER = Path(__file__).resolve().parents[1] / "run_lab.py"
START_LIMIT_S = 60.0
"""Seconds that a detached lab has to take its folder (our choice)."""
LAST_LINES = 20
"""Lines of a detached lab's output that `attach` shows first (our choice)."""


def detach(argv: Sequence[str], root: Path, limit_s: float = START_LIMIT_S) -> str:
    """Start `run_lab.py` with these arguments, detached from the terminal; returns a sentence on its state.

    Raises UserError, with its last line, where it failed within `limit_s`.
    """
    if lab_process(root):
        raise UserError(f"Another lab runs in {root}: see it with `{command_for('attach', root)}`.")
    with _opened(root, LOG) as log:
        process = subprocess.Popen(
            [sys.executable, str(LAUNCHER), *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + limit_s
    holds = False
    while not holds and process.poll() is None and time.monotonic() < deadline:
        time.sleep(POLL_EVERY_S)
        holder = lab_process(root)
        holds = holder is not None and holder.pid == process.pid
    attach_it = f"`{command_for('attach', root)}`"
    if holds:
        return f"The lab runs as process {process.pid}; {attach_it} shows it."
    if process.returncode is None:
        known = f"Process {process.pid} runs, and has not taken {root} in {limit_s:.0f} s"
        return f"{known}; {attach_it} shows its output."
    words = (root / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    if process.returncode:
        raise UserError(words[-1].removeprefix("error: ") if words else "The lab ended at once.")
    return f"The lab has ended already, all done; {attach_it} shows what it said."


def attach(root: Path, say: Callable[[str], None], stopped: Callable[[], bool]) -> None:
    """Show the last lines of a detached lab, and what follows until it ends or a stop is asked for."""
    holder, path = lab_process(root), root / LOG
    if not path.exists():
        raise UserError(f"No lab was detached in {root}.")
    with path.open(encoding="utf-8", errors="replace") as log:
        for line in log.read().splitlines()[-LAST_LINES:]:
            say(line)
        while holder and not stopped():
            alive = is_alive(holder.pid, holder.began)
            for line in log.read().splitlines():
                say(line)
            if not alive:
                break
            time.sleep(POLL_EVERY_S)
