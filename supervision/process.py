"""A process's manners: how it answers Ctrl-C and SIGTERM, and how it keeps its memory.

It imports the standard library only, since launchers need it before anything else is loaded.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from types import FrameType

INTERRUPTED = 130
"""Exit code of a shell's command that Ctrl-C ended: 128 + SIGINT."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""From glibc's <malloc.h>."""
KEPT_BYTES = 1 << 30
"""Larger than any tensor of an update here: 26 MB for IQN's 2,048 rows of 3,136 features."""


def exit_quietly_on_interrupt() -> None:
    """While libraries load, SIGINT ends the process with one sentence, unless it was started to ignore it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _exit)


def raise_on_interrupt() -> None:
    """Undo `exit_quietly_on_interrupt`: from here on SIGINT raises KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"\nInterrupted before anything had begun.\n")
    os._exit(INTERRUPTED)


class Stop:
    """A flag that loops look at, so that a process ends where nothing is half done.

    It is set once, by a signal (after `on_signals`) or by `request`.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def on_signals(self) -> Stop:
        """Make SIGINT and SIGTERM set this flag; call it from the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda _number, _frame: self.request())
        return self

    def request(self) -> None:
        """Ask for the end."""
        self._event.set()

    def __call__(self) -> bool:
        """Whether the end was asked for."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep until the end is asked for, at most `seconds`; returns whether it was."""
        return self._event.wait(seconds)


def keep_freed_memory() -> None:
    """Tell glibc's malloc to serve large blocks from memory it keeps; other C libraries are left as they are.

    By default a block of more than some 100 KB comes fresh from the kernel, which hands it over page by page
    as it is first touched, 2 µs each, and takes it back when it is freed. An update of
    specs/atari/rainbow_iqn_cpu.yaml took 50 ms so and takes 20 ms with this (docs/performance.md).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
