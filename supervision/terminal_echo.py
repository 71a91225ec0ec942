"""What a terminal echoes of keys while a picture is redrawn on it."""

from __future__ import annotations

import contextlib
import os
import termios
from collections.abc import Iterator
from typing import IO, Any

LOCAL_MODES = 3
"""Place of the local modes in what termios.tcgetattr returns."""


@contextlib.contextmanager
def without_control_keys(file: IO[str]) -> Iterator[None]:
    """Ctrl-C is not echoed: its ^C would wrap at the right edge, and the next picture begin a row too low.

    Nothing changes where `file` is no terminal, or one that other programs have in the foreground.
    """
    before = _modes(file)
    if before is not None:
        quiet = [*before]
        quiet[LOCAL_MODES] &= ~termios.ECHOCTL
        _set_modes(file, quiet)
    try:
        yield
    finally:
        if before is not None:
            _set_modes(file, before)


def _modes(file: IO[str]) -> list[Any] | None:
    with contextlib.suppress(OSError, ValueError, termios.error):
        return termios.tcgetattr(file.fileno())
    return None


def _set_modes(file: IO[str], modes: list[Any]) -> None:
    with contextlib.suppress(OSError, ValueError, termios.error):
        if os.tcgetpgrp(file.fileno()) == os.getpgrp():  # else the terminal would stop this process
            termios.tcsetattr(file.fileno(), termios.TCSANOW, modes)
