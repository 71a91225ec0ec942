"""Processes by number and start, so that a number that was given to another one is not mistaken for it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

POLL_EVERY_S = 0.1


def started_at(pid: int) -> int:
    """Start of a living process in clock ticks since boot (proc(5), stat's field 22); 0 if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    state, *fields = stat.rpartition(")")[2].split()
    return 0 if state == "Z" else int(fields[18])


def lives(pid: int, began: int) -> bool:
    """Whether that very process still runs."""
    return pid > 0 and began > 0 and started_at(pid) == began


def end(pid: int, began: int, patience_s: float) -> bool:
    """Ask that process to save and end, and kill its group after `patience_s`; whether it lived."""
    if not lives(pid, began):
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while lives(pid, began) and time.monotonic() < deadline:
        time.sleep(POLL_EVERY_S)
    if lives(pid, began):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    return True
