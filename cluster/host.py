"""What Ray places on a machine: the host of one child process."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import NamedTuple

from supervision.child import Child, ChildSpec

POLL_EVERY_S = 0.05


class State(NamedTuple):
    """Of a hosted process."""

    exit_code: int | None
    """None while it runs."""
    lines: list[str]
    """Which it wrote since the last report."""


class Whereabouts(NamedTuple):
    """What --status says of a hosted process."""

    machine: str
    node: str
    """Ray's name of the machine."""
    pid: int
    exit_code: int | None


class ProcessHost:
    """Starts a child process at once; Ray makes another host on another machine where this one is lost.

    Ray calls it from its main thread, one call at a time: the child follows that thread's end (`Child`).
    """

    def __init__(self, spec: ChildSpec, directory: Path) -> None:
        """`directory`: that paths of the command line are relative to."""
        os.chdir(directory)
        self._child = Child(spec)
        self._child.start()

    def start(self) -> None:
        """Again, after its end."""
        self._child.start()

    def state(self, patience_s: float) -> State:
        """Waits up to `patience_s` for its end."""
        deadline = time.monotonic() + patience_s
        while self._child.running and time.monotonic() < deadline:
            time.sleep(POLL_EVERY_S)
        exit_code = self._child.exit_code  # first, so that nothing is written after the lines are read
        return State(exit_code, self._child.new_lines())

    def whereabouts(self) -> Whereabouts:
        """At once."""
        import ray  # an extra

        node = str(ray.get_runtime_context().get_node_id())
        return Whereabouts(os.uname().nodename, node, self._child.pid, self._child.exit_code)

    def terminate(self) -> None:
        """Ask it to save and end."""
        self._child.terminate()

    def close(self, forget_log: bool) -> None:
        """End it at once, if it runs."""
        self._child.kill()
        if forget_log:
            self._child.spec.log.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others of the run are still there
                self._child.spec.log.parent.rmdir()
