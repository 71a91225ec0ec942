"""What the tests of Malmo share: environments on Minecraft clients on paper, with short limits.

A test module takes over the fixtures that it needs by name: `server = malmo_play.server`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from envs.config import EnvConfig
from envs.malmo import MalmoVector
from envs.malmo.connection import MalmoLimits
from tests.envs.malmo_server import Server

MakeConfig = Callable[..., EnvConfig]
Start = Callable[..., MalmoVector]

QUICK = MalmoLimits(
    connect=0.4, reply=5.0, start=10.0, picture=5.0, retry=0.01,
    rest=0.1, longest_rest=0.2, patience=20.0, poll=0.01,
)  # fmt: skip
SMALL = {"action_repeat": 1, "frame_width": 32, "frame_height": 24, "episode_time_sec": 6.0}
"""Episodes of 30 pictures."""
IDLE = np.zeros((1, 2), np.float32)


@pytest.fixture(autouse=True)
def locks_of_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test meet no lock of another, and leave none."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def server() -> Iterator[Server]:
    """A client without faults."""
    with Server() as server:
        yield server


@pytest.fixture
def start(make_config: MakeConfig) -> Iterator[Start]:
    """Builds one environment on the clients it is given."""
    envs: list[MalmoVector] = []

    def make(*servers: Server, limits: MalmoLimits = QUICK, **changes: object) -> MalmoVector:
        ports = ",".join(f"127.0.0.1:{server.port}" for server in servers)
        envs.append(MalmoVector(make_config("malmo:1", malmo_ports=ports, **SMALL | changes), [5], limits))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


def idle_until_the_end(env: MalmoVector) -> int:
    """Returns after how many steps the episode is truncated."""
    for step in range(1, 100):
        _, _, terminated, truncated, _ = env.step(IDLE)
        assert not terminated[0]
        if truncated[0]:
            return step
    raise AssertionError("no end")
