"""A process on another machine, to be handled as if it were a child of this one."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from cluster.host import ProcessHost, State
from supervision.child import ChildSpec
from supervision.process import USER_ERROR

REPORT_EVERY_S = 1.0
"""Longest time (seconds) between two reports of a process; one that ends is reported at once."""
END_LIMIT_S = 3.0
"""Longest wait (seconds) for a host to end its process at once."""
LAST_LINES = 50
KILLED, TERMINATED = -9, -15
"""Exit codes of processes that SIGKILL and SIGTERM end, as subprocess has them."""


class RemoteChild:
    """Has `Child`'s methods. None of them waits for the other machine, but for `kill`."""

    def __init__(self, spec: ChildSpec, options: Mapping[str, Any], directory: Path, token: str) -> None:
        """Nothing is started yet.

        Args:
            spec: its log is written here; what is written over there is gone with the process.
            options: of the Ray actor: its resources and place.
            directory: that paths of the command line are relative to.
            token: names the run's folder of logs over there.
        """
        self.spec = spec
        self._there = replace(spec, log=Path(tempfile.gettempdir()) / token / spec.log.name)
        self._options, self._directory = options, directory
        self._host: Any = None
        self._report: Any = None  # that is to come
        self._has_room = False  # whether Ray has found room for it
        self._exit_code: int | None = None
        self._new: list[str] = []
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    def start(self) -> None:
        """Where Ray finds room, now or later; a process that is started again stays where it is."""
        self.spec.log.parent.mkdir(parents=True, exist_ok=True)
        self._exit_code = None
        self._last.clear()
        if self._host is None:
            kind = ray.remote(ProcessHost).options(name=self.spec.role, **self._options)
            self._host = kind.remote(self._there, self._directory)
        else:
            self._host.start.remote()
        self._ask()

    @property
    def running(self) -> bool:
        """Whether it was started, or is to start where there is room, and has not ended."""
        self._look()
        return self._report is not None

    @property
    def exit_code(self) -> int | None:
        """As `Child.exit_code`."""
        self._look()
        return self._exit_code

    def terminate(self) -> None:
        """Ask it to save and end."""
        if self._host is None:
            return
        if self._has_room:
            self._host.terminate.remote()
        else:
            self._end(TERMINATED)

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        if self._host is not None:
            self._end(KILLED if self._exit_code is None else self._exit_code)

    def new_lines(self) -> list[str]:
        """Whole lines that it wrote since the last call."""
        lines, self._new = self._new, []
        return lines

    def last_lines(self, count: int) -> list[str]:
        """The last non-empty lines that it wrote since its last start."""
        return list(self._last)[-count:]

    def _ask(self) -> None:
        self._report = self._host.state.remote(REPORT_EVERY_S)

    def _look(self) -> None:
        """Take in what has come."""
        if self._report is None or not ray.wait([self._report], timeout=0)[0]:
            return
        try:
            self._take(ray.get(self._report))
        except ray.exceptions.ActorUnavailableError:
            if self._has_room:
                self._note(f"The {self.spec.role} is lost with its machine; Ray starts it on another.")
            self._has_room = False
            self._ask()
        except ray.exceptions.RayActorError as error:
            self._lose(error)

    def _take(self, state: State) -> None:
        self._has_room = True
        self._note(*state.lines)
        if state.exit_code is None:
            return self._ask()
        self._report, self._exit_code = None, state.exit_code
        if state.exit_code == 0:  # its room is for others
            self._end(0)
        return None

    def _lose(self, error: Any) -> None:
        self._host, self._report, self._has_room = None, None, False
        cause = next(line for line in reversed(str(error).splitlines()) if line.strip()).strip()
        if error.actor_init_failed:
            self._exit_code = USER_ERROR
            self._note(f"error: The {self.spec.role} cannot start where Ray placed it: {cause}")
        else:
            self._exit_code = KILLED
            self._note(f"The {self.spec.role} is lost, and Ray does not start it again: {cause}")

    def _end(self, exit_code: int) -> None:
        host, self._host, self._report, self._exit_code = self._host, None, None, exit_code
        if self._has_room:
            ray.wait([host.close.remote(forget_log=True)], timeout=END_LIMIT_S)
        ray.kill(host)
        self._has_room = False

    def _note(self, *lines: str) -> None:
        if lines:
            with self.spec.log.open("a") as log:
                log.writelines(f"{line}\n" for line in lines)
        self._new.extend(lines)
        self._last.extend(line for line in lines if line.strip())
