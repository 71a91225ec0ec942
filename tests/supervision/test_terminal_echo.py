"""Ctrl-C while a picture is redrawn, on a real terminal."""

from __future__ import annotations

import os
import pty
import sys
import termios

VIEW = """
import sys
from supervision.terminal_echo import without_control_keys

with without_control_keys(sys.stdout):
    print("ready", flush=True)
    sys.stdin.read(1)
"""


def _rest(terminal: int) -> bytes:
    """What was written; Linux reports the end as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def test_ctrl_c_leaves_no_mark_on_the_picture_and_the_terminal_as_it_was() -> None:
    """At the right edge its ^C would wrap, and the picture after it leave a row of the one before."""
    process, main = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-c", VIEW])
    before = termios.tcgetattr(main)
    said = b""
    while b"ready" not in said:
        said += os.read(main, 100)
    assert before[3] & termios.ECHOCTL and not termios.tcgetattr(main)[3] & termios.ECHOCTL
    os.write(main, b"\x03")
    os.waitpid(process, 0)
    assert termios.tcgetattr(main) == before
    assert b"^C" not in said + _rest(main)
    os.close(main)
