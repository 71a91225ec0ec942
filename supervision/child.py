"""One child process of the supervisor: in its own group, with a log file, gone when its parent is gone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""Number of the prctl, from Linux's <sys/prctl.h>, that sets the signal which a process gets when its parent
ends.
"""
TAIL_BYTES = 1 << 16
"""Bytes of a log in which its last lines are looked for: an actor may have written gigabytes."""

_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class ChildSpec:
    """What to run and where its output goes."""

    role: str
    """Its name in messages: "learner", "actor 3", "redis"."""
    command: Callable[[], Sequence[str]]
    """Program and arguments, computed at each start: a second start may need others than the first."""
    log: Path
    """Standard output and error are appended here."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that are set besides the parent's own."""


class Child:
    """A process that can be started again and again.

    Its own process group keeps a terminal's Ctrl-C away from it, so that the supervisor alone decides in
    which order things stop. Should the supervisor be killed, the kernel sends SIGTERM. Start it from the main
    thread: that signal comes when the *thread* that started it ends.
    """

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._echoed = 0

    def start(self) -> None:
        """Run the command; OSError when the program or the log file cannot be opened."""
        self.spec.log.parent.mkdir(parents=True, exist_ok=True)
        with self.spec.log.open("ab") as log:
            self._log_start = log.tell()
            if self._process is None:
                self._echoed = self._log_start
            self._process = subprocess.Popen(
                self.spec.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.spec.environment},
                process_group=0,
                preexec_fn=follow_parent(os.getpid()),
            )

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """As the shell's, or minus the signal that killed it; None while it runs or never ran."""
        if self._process is None:
            return None
        if self._process.returncode is None:
            _end_orphans(self._process.pid)
        return self._process.poll()

    @property
    def pid(self) -> int:
        """Process number; RuntimeError before the first start."""
        if self._process is None:
            raise RuntimeError(f"{self.spec.role} has not been started.")
        return self._process.pid

    def terminate(self) -> None:
        """Ask it to save and end."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """End it at once, with whatever it started itself, and wait until it is gone."""
        if self.running:
            os.killpg(self.pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def new_lines(self) -> list[str]:
        """Whole lines that it wrote since the last call."""
        if self._process is None:
            return []
        text = self._read_log(self._echoed)
        whole = text[: text.rfind(b"\n") + 1]
        self._echoed += len(whole)
        return whole.decode(errors="replace").splitlines()

    def last_lines(self, count: int) -> list[str]:
        """The last non-empty lines that it wrote since its last start."""
        lines = self._read_log(self._log_start, TAIL_BYTES).decode(errors="replace").splitlines()
        return [line for line in lines if line.strip()][-count:]

    def _read_log(self, start: int, most: int | None = None) -> bytes:
        """From `start` on, at most its last `most` bytes; nothing of a log that was removed or cut off."""
        try:
            with self.spec.log.open("rb") as log:
                log.seek(start if most is None else max(start, log.seek(0, os.SEEK_END) - most))
                return log.read()
        except FileNotFoundError:
            return b""


def _end_orphans(leader: int) -> None:
    """Kill what is left of the group of a process that died: a simulator that an actor had started, say.

    The process is looked at but not reaped, so that its number is still that of its group.
    """
    with contextlib.suppress(ChildProcessError, ProcessLookupError, PermissionError):
        ended = os.waitid(os.P_PID, leader, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None and ended.si_status:
            os.killpg(leader, signal.SIGKILL)


def described(exit_code: int) -> str:
    """`exit code 1`, or `killed by SIGKILL`."""
    return f"exit code {exit_code}" if exit_code >= 0 else f"killed by {signal.Signals(-exit_code).name}"


def thread_limits(count: int) -> dict[str, str]:
    """Settings of PyTorch's thread pool, less those that the user made.

    By itself each process would take all cores, and a thread that waits for its siblings would keep its core
    busy the while. With other processes on the same cores that is slow: on 2 cores under load, updates per
    second were 0.7 so, 2.2 with one thread and 2.7 with two that wait passively.
    """
    settings = {"OMP_NUM_THREADS": str(count), "OMP_WAIT_POLICY": "PASSIVE"}
    return {name: value for name, value in settings.items() if name not in os.environ}


def follow_parent(parent: int) -> Callable[[], None]:
    """What a child does first: ask for SIGTERM at its parent's death, even a past one."""

    def follow() -> None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)

    return follow
