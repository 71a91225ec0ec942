"""The pool of Minecraft clients: crashes, recoveries, and actors that share it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace

import numpy as np
import pytest

from envs.config import EnvError
from envs.malmo.clients import FileLock
from tests.envs import malmo_play
from tests.envs.malmo_play import IDLE, QUICK, Start, idle_until_the_end
from tests.envs.malmo_server import Faults, Server
from tests.processes import ROOT

locks_of_our_own = malmo_play.locks_of_our_own
server = malmo_play.server
start = malmo_play.start


@pytest.mark.parametrize("way", ["crash", "silence"])
def test_an_episode_breaks_off_with_its_client_and_the_next_one_has_another(
    way: str, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    with Server(Faults(crash_at_step=3 if way == "crash" else 0)) as broken, Server() as healthy:
        env = start(broken, healthy, limits=replace(QUICK, reply=1.0), no_reward_default=-1.0)
        env.reset()
        frames = [env.step(IDLE)[0] for _ in range(2)]
        broken.faults.silent = way == "silence"
        last, rewards, terminated, truncated, _ = env.step(IDLE)
        assert (rewards[0], terminated[0], truncated[0]) == (-1.0, False, True)
        assert np.array_equal(last, frames[-1])
        assert f"The Minecraft client 127.0.0.1:{broken.port} " in caplog.text
        env.step(IDLE)
        assert (broken.missions, healthy.missions) == (1, 1)
        assert idle_until_the_end(env) == 31


def test_a_client_that_came_back_is_tried_again(start: Start) -> None:
    with Server(Faults(crash_at_step=2)) as one, Server(Faults(crash_at_step=2)) as other:
        env = start(one, other)
        env.reset()
        assert idle_until_the_end(env) == 2
        env.step(IDLE)
        assert idle_until_the_end(env) == 2
        assert (one.missions, other.missions) == (1, 1)
        one.faults.crash_at_step = 0
        one.start()
        env.step(IDLE)
        assert (one.missions, other.missions) == (2, 1)
        assert idle_until_the_end(env) == 31


def test_patience_ends(start: Start) -> None:
    with Server(Faults(crash_at_step=1)) as server:
        env = start(server, limits=replace(QUICK, patience=0.5))
        env.reset()
        assert idle_until_the_end(env) == 1
        with pytest.raises(EnvError, match=f"free and healthy at 127.0.0.1:{server.port} \\(connection"):
            env.step(IDLE)


PLAY = """
import sys
import numpy as np
from dataclasses import replace
from envs.registry import make_env
from tests.envs.conftest import SABER
from tests.envs.malmo_play import SMALL
env = make_env(replace(SABER, game="malmo:1", malmo_ports=sys.argv[1], **SMALL), [1])
env.reset()
while True:
    if env.step(np.zeros((1, 2), np.float32))[3]:
        print("episode", flush=True)
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": tempfile.gettempdir()}


def test_two_processes_take_turns_at_one_client(server: Server, start: Start) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PLAY, f"127.0.0.1:{server.port}"],
        env=environment(),
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()  # it plays on without a pause
        env = start(server)
        for _ in range(3):
            env.reset()  # ours came last and is next
            missions = server.missions
            assert idle_until_the_end(env) == 31
            assert server.missions == missions  # nobody else began one
            other.stdout.readline()  # now it is the other's turn
        env.close()
        before = server.missions
        other.stdout.readline()
        other.stdout.readline()
        assert server.missions > before
        other.kill()


def test_a_client_in_use_is_waited_for_longer_than_an_absent_one(server: Server, start: Start) -> None:
    lock = FileLock(f"127.0.0.1:{server.port}")
    assert lock.acquire()
    release = threading.Timer(2 * QUICK.connect, lock.release)
    release.start()
    start(server).reset()
    release.join()
    assert server.missions == 1


def test_a_killed_process_leaves_its_client_free(server: Server, start: Start) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PLAY, f"127.0.0.1:{server.port}"],
        env=environment(),
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        other.kill()
    env = start(server)
    env.reset()
    assert idle_until_the_end(env) == 31
