"""A lab that outlives its terminal, and a terminal that looks at it again."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from args import UserError
from lab.house import command_for, lab_process, make_root
from lab.names import LOG
from lab.process import POLL_EVERY_S, lives

LAUNCHER = Path(__file__).resolve().parents[1] / "run_lab.py"
START_LIMIT_S = 60.0
LAST_LINES = 20


def log_path(root: Path) -> Path:
    """What a detached lab says."""
    return root / LOG


def detach(argv: Sequence[str], root: Path, limit_s: float = START_LIMIT_S) -> str:
    """Start `run_lab.py` with these arguments in a session of its own; what became of it so far, in words.

    Raises UserError, with its last words, where it ended within `limit_s` and not well.
    """
    if lab_process(root):
        raise UserError(f"Another lab runs in {root}: see it with `{command_for('attach', root)}`.")
    make_root(root)
    with log_path(root).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(LAUNCHER), *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + limit_s
    while not (holds := _holds(process.pid, root)) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(POLL_EVERY_S)
    attach_it = f"`{command_for('attach', root)}`"
    if holds:
        return f"The lab runs as process {process.pid}; {attach_it} shows it."
    if process.returncode is None:
        known = f"Process {process.pid} runs, and has not taken {root} in {limit_s:.0f} s"
        return f"{known}: what it does is not known yet; {attach_it} shows what it says."
    words = log_path(root).read_text(encoding="utf-8", errors="replace").splitlines()
    if process.returncode:
        raise UserError(words[-1].removeprefix("error: ") if words else "The lab ended at once.")
    return f"The lab has ended already, all done; {attach_it} shows what it said."


def _holds(pid: int, root: Path) -> bool:
    process = lab_process(root)
    return process is not None and process[0] == pid


def attach(root: Path, say: Callable[[str], None], stopped: Callable[[], bool]) -> None:
    """Show the last lines of a detached lab, and what follows until it ends or a stop is asked for."""
    process = lab_process(root)
    path = log_path(root)
    if not path.exists():
        raise UserError(f"No lab was detached in {root}.")
    with path.open(encoding="utf-8", errors="replace") as log:
        for line in log.read().splitlines()[-LAST_LINES:]:
            say(line)
        while process and not stopped():
            alive = lives(*process)
            for line in log.read().splitlines():
                say(line)
            if not alive:
                break
            time.sleep(POLL_EVERY_S)
