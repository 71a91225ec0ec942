"""Launchers that are forked are as those that are started anew."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.processes import start, until


def test_a_forked_launcher_is_a_process_of_its_own(tmp_path: Path) -> None:
    """A child of this one, with its command line, output, signals and exit code."""
    logs = [tmp_path / name for name in ("mistaken", "waiting", "stopped")]
    mistaken = start("launch_learner.py", "--no-such-flag", log=logs[0])
    alike = [
        start("launch_actor.py", "--host-redis", tmp_path / name, log=tmp_path / name)
        for name in ("waiting", "stopped")
    ]
    assert mistaken.wait(60) == 2 and "--no-such-flag" in logs[0].read_text()
    until(lambda: all(f"No Redis server answers at {log}" in log.read_text() for log in logs[1:]), str)
    for process in alike:
        assert Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())
    waiting, stopped = alike
    waiting.kill()
    assert waiting.wait(60) == -signal.SIGKILL and stopped.poll() is None
    stopped.terminate()
    assert stopped.wait(60) == 0
