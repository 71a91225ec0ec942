"""Ctrl-C while a program is still loading its libraries, before anything of its own could answer it."""

from __future__ import annotations

import os
import signal
from types import FrameType

EXIT_CODE = 130
"""As of a shell's command that Ctrl-C ended: 128 + SIGINT."""


def end_plainly() -> None:
    """From here on, and until somebody else handles SIGINT, it ends the process with one sentence; a process
    that was started to ignore it goes on doing so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)


def answer_again() -> None:
    """What `end_plainly` changed is over: from here on SIGINT raises KeyboardInterrupt, as Python does."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"\nInterrupted before anything had begun.\n")
    os._exit(EXIT_CODE)
