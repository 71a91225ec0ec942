"""Launchers that have imported their libraries before they begin: a start costs a fork instead of seconds.

One server for each worker of pytest imports what launchers import. What it forks is a process as any other, a
child of pytest's with a pid, signals, memory and an exit code of its own, and runs the script as __main__
from its first line to its last. Tests of a start itself use `python` (tests/test_start_learning.py).
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO

from numba.core.registry import cpu_target

ROOT = Path(__file__).parents[1]
SCRIPTS = ("launch_learner.py", "launch_actor.py", "test_multiple_seed.py")
LATER = ("envs.gym", "plotly.graph_objects", "reporting.pages.run_page", "reporting.tensorboard")
"""What they import only once they run."""
OWN = {**os.environ, "OMP_NUM_THREADS": "1"}
"""The server's environment, whatever the test has changed that is the first to start something."""
PR_SET_CHILD_SUBREAPER = 36
"""From <linux/prctl.h>: whose parent ends becomes a child of this process instead of init's."""
LONGEST = 1 << 17
"""Bytes of a command line and an environment."""


class Forked(subprocess.Popen[bytes]):
    """`python script words…` in the root and this environment, forked from this process's server."""

    def __init__(self, script: str, words: list[str], output: IO[bytes], env: dict[str, str]) -> None:
        argv = [str(ROOT / script), *words]
        self._start, self._output = json.dumps([argv, env]).encode(), output
        super().__init__([sys.executable, *argv])

    def _execute_child(self, *_how: object) -> None:
        server, libc = _server(), ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(server, [self._start], [self._output.fileno()])
            answer = server.recv(LONGEST)
        finally:
            libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        assert answer, "the server of forked launchers has ended"
        self.pid, self._child_created = int(answer), True


@cache
def _server() -> socket.socket:
    """A line to it, with whose end it ends."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.forked", str(its.fileno())]
    with its:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
            env=OWN,
            pass_fds=[its.fileno()],
        )
    _SERVERS.append(process)
    return ours


_SERVERS: list[subprocess.Popen[bytes]] = []


def _next_start(line: socket.socket) -> list[str]:
    """Returns in each forked process: its argv. Output and environment are its own by then."""
    while True:
        message, outputs, _, _ = socket.recv_fds(line, LONGEST, 1)
        if not message:
            sys.exit()
        if not _forked_for_another():
            break
        os.close(outputs[0])
    for standard in (1, 2):
        os.dup2(outputs[0], standard)
    os.close(outputs[0])
    with line:
        line.send(str(os.getpid()).encode())
    argv, env = json.loads(message)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [str(ROOT), *filter(None, env.get("PYTHONPATH", "").split(":"))]
    return list(map(str, argv))


def _forked_for_another() -> bool:
    """Fork twice; the process between ends, so that the last one is adopted by who asked for it. As os.fork:
    False in the new process.
    """
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return True
    between = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == between:
        time.sleep(0.001)
    return False


def _as_main(argv: list[str]) -> tuple[CodeType, ModuleType]:
    """The script's code, and the module that it fills."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__, sys.argv = argv[0], argv
    return compile(Path(argv[0]).read_bytes(), argv[0], "exec"), main


if __name__ == "__main__":
    for module in (*(script.removesuffix(".py") for script in SCRIPTS), *LATER):
        importlib.import_module(module)
    for context in (cpu_target.typing_context, cpu_target.target_context):
        context.refresh()
    assert len([*Path("/proc/self/task").iterdir()]) == 1, "a fork has none of the other threads"
    gc.freeze()
    CODE, MAIN = _as_main(_next_start(socket.socket(fileno=int(sys.argv[1]))))
    exec(CODE, MAIN.__dict__)
