"""Processes of a tormented run, which are started again; and what a run must not do."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path


class Violation(AssertionError):
    """Something that must hold in spite of faults does not."""


def wait_until(condition: Callable[[], bool], limit_s: float, what: str) -> None:
    """Raises Violation after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise Violation(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.1)


class Process:
    """A process that is started again whenever it has ended."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str]) -> None:
        self._command, self.log, self._env = command, log, env
        self.starts, self.started_at = 0, 0.0
        self.start()

    def start(self) -> None:
        """Begin, with a log that goes on."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.log.parent,
                env=self._env,
                preexec_fn=_heed_hangup,
            )
        self.starts, self.started_at = self.starts + 1, time.time()

    def look_after(self) -> None:
        """Start it again where it has ended by a signal or with a sentence; anything else is a Violation."""
        code = self.process.poll()
        if code is None:
            return
        words = self.log.read_text(errors="replace")
        if code not in (-signal.SIGKILL, 1) or "Traceback" in words:
            raise Violation(f"{self.log.name} ended with code {code}: {words[-2000:]}")
        self.start()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


def _heed_hangup() -> None:
    """Also where this program was started to outlive its terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def free_port() -> int:
    """One of this machine's that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
