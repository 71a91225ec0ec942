"""Set-up of a process: signals, questions to its user, logging, memory allocator.

It imports the standard library only, since launchers need it before anything else is loaded.
"""

from __future__ import annotations

import argparse
import ctypes
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

INTERRUPTED = 130
"""Exit code of a shell's command that Ctrl-C ended: 128 + SIGINT."""
USER_ERROR = 2
"""Exit code of a process whose command line, files or set-up are at fault: another start would end alike."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of malloc's parameters, from glibc's <malloc.h>."""
KEPT_BYTES = 1 << 30
"""Bytes up to which malloc serves blocks from memory that it keeps: more than any tensor of an update here
has, 26 MB for IQN's 2,048 rows of 3,136 features.
"""


class CtrlC(KeyboardInterrupt):
    """SIGINT was sent. An environment that raises KeyboardInterrupt by itself raises another."""


ROOMS = (
    "__main__ acting agents cluster envs evaluation event_log kernels learning live memory models reporting"
    " supervision wiring"
).split()
"""Names of our own packages, whose logging SIGUSR1 makes verbose; that of libraries stays as it is."""

log = logging.getLogger(__name__)


def begin_program() -> None:
    """Before anything is imported that takes long or may be missing: both end the process in one sentence."""
    exit_quietly_on_interrupt()
    name_missing_packages()


def exit_quietly_on_interrupt() -> None:
    """While libraries load, SIGINT ends the process with one sentence, unless it was started to ignore it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _exit)


def name_missing_packages() -> None:
    """From here on, an import of a package that is not installed ends the process with one sentence."""
    sys.excepthook = _say_what_is_missing


def raise_on_interrupt() -> None:
    """From here on SIGINT raises CtrlC, unless the process was started to ignore it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _raise)


def _say_what_is_missing(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if not missing or missing in ROOMS:
        return sys.__excepthook__(kind, error, trace)
    print(
        f"error: {sys.executable} has no package {missing}: `bash scripts/setup.sh` makes an environment"
        " that has all, and `source .venv/bin/activate` enters it.",
        file=sys.stderr,
        flush=True,
    )
    os._exit(USER_ERROR)


def _exit(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"\nInterrupted before anything had begun.\n")
    os._exit(INTERRUPTED)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise CtrlC


def set_up_logging() -> None:
    """Log and warn in plain sentences on standard error; SIGUSR1 makes that verbose, or plain again."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of its cache of fonts
    signal.signal(signal.SIGUSR1, _toggle_verbose)
    logging.captureWarnings(True)
    warnings.formatwarning = lambda message, *_, **__: str(message)


def _toggle_verbose(_number: int, _frame: FrameType | None) -> None:
    verbose = log.getEffectiveLevel() != logging.DEBUG
    for room in ROOMS:
        logging.getLogger(room).setLevel(logging.DEBUG if verbose else logging.NOTSET)
    log.info("Logging is %s now (SIGUSR1).", "verbose" if verbose else "plain")


def at_least_one(word: str) -> int:
    """A whole number of a command line; ArgumentTypeError for what is none, or below 1."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is no whole number of 1 or more.")
    return int(word)


def say(line: str) -> None:
    """To the terminal, or a log, at once."""
    print(line, flush=True)


def agrees(question: str) -> bool:
    """Whether the user says so; where nobody can answer, no."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


class Stop(threading.Event):
    """A flag that loops look at, so that a process ends where nothing is half done.

    Calling it asks whether it is set.
    """

    __call__ = threading.Event.is_set

    def on_signals(self) -> Stop:
        """Make SIGINT, SIGTERM and SIGHUP (a closed terminal) set this flag; call it from the main thread."""
        for number in stop_signals():
            signal.signal(number, lambda _number, _frame: self.set())
        return self

    def on_signals_in_native_code(self) -> Stop:
        """As `on_signals`, also while the main thread is in code that does not return to Python."""
        self.on_signals()
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=self._hear, args=(reader,), name="signals", daemon=True).start()
        return self

    def _hear(self, reader: int) -> None:
        numbers = set(stop_signals())
        while received := os.read(reader, 1):
            if received[0] in numbers:
                self.set()


def stop_signals() -> list[int]:
    """SIGINT, SIGTERM, and SIGHUP unless this process was started to outlive its terminal (nohup)."""
    outlives = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if outlives else [signal.SIGHUP])]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """While nothing can be lost: a signal to stop ends the process at once, even in code that never returns.

    Threads but the main one hear of no signals: for them nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in stop_signals() if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, signal.SIG_DFL) for number in heard}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


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
