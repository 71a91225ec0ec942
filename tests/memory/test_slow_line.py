"""A line that carries everything, slowly: 27 MB of weights arrive, though that takes several time-outs."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from acting.links.weights import WeightsReader
from agents.base import Update
from learning import publishing
from learning.learner import Learner, LearnerConfig
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.run import LearnerSlot
from memory.runs.scripts import ReplayLost
from memory.runs.weights import Weights, publish_weights
from memory.server import connection
from memory.server.connection import Client, RedisConfig, make_client
from memory.server.patience import Patience
from memory.server.replies import UNREACHABLE, explained
from tests.faults.processes import free_port
from tests.faults.proxy import Proxy
from tests.memory.road import begin
from tests.processes import until
from tests.server import serving

TIMEOUT_S = 1.0
PAYLOAD, BYTES_PER_S = 27_000_000, 9e6


@contextmanager
def _behind(folder: Path, bytes_per_s: float) -> Iterator[tuple[Client, Client]]:
    """Clients of a server behind a line, and beside it."""
    with serving(folder) as path:
        near, port = make_client(RedisConfig(path, 0)), free_port()
        near.config_set("port", port)
        line = Proxy(port, bytes_per_s)
        far = make_client(RedisConfig("127.0.0.1", line.port))
        yield far, near
        far.close()
        near.close()
        line.close()


@pytest.fixture(autouse=True)
def timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shorter one than a program has."""
    monkeypatch.setattr(connection, "SOCKET_TIMEOUT_S", TIMEOUT_S)


@pytest.mark.slow
def test_weights_arrive_over_a_slow_line(tmp_path: Path) -> None:
    """There and back, each taking three times the time-out, at the first try."""
    with _behind(tmp_path, BYTES_PER_S) as (far, near):
        keys, payload = Keys("run"), os.urandom(PAYLOAD)
        sent = Weights(begin(near, keys, 400).epoch, 7, 70, payload)
        began = time.monotonic()
        publish_weights(far, keys, sent)
        assert time.monotonic() - began > 2 * TIMEOUT_S
        assert WeightsReader(near, keys).poll() == sent
        began = time.monotonic()
        assert WeightsReader(far, keys).poll() == sent
        assert time.monotonic() - began > 2 * TIMEOUT_S


def test_little_of_a_command_waits_in_the_kernel() -> None:
    """Else a slow line would be sending long after the wait for the reply has begun."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with socket.create_connection(server.getsockname()) as line, server.accept()[0]:
            begun = SimpleNamespace(_sock=line, socket_timeout=TIMEOUT_S, on_connect=lambda: None)
            connection._begin(begun)
            line.setblocking(False)
            taken = 0
            with suppress(BlockingIOError):
                while True:
                    taken += line.send(bytes(connection.READ_BYTES))
    assert taken <= 4 * connection.UNSENT_BYTES, "in the buffers of both ends"


@pytest.mark.parametrize("command", ["PING", f"SET key {PAYLOAD}"], ids=["reading", "sending"])
def test_silence_ends_a_wait(command: str, tmp_path: Path) -> None:
    """For a reply, and for room to send: in words that say what is wrong."""
    with _behind(tmp_path, 1.0) as (far, _):
        words: list[object] = [bytes(int(word)) if word.isdecimal() else word for word in command.split()]
        began = time.monotonic()
        with pytest.raises(UNREACHABLE) as raised:
            far.execute_command(*words)
        assert 0.5 * TIMEOUT_S < time.monotonic() - began < 30 * TIMEOUT_S
        assert explained(raised.value) == "nothing is heard from it"


def _learner(far: Client, keys: Keys, epoch: int, weights: torch.Tensor) -> Learner:
    def next_batch(_limit_s: float) -> str:
        time.sleep(0.005)
        return "batch"

    source: Any = SimpleNamespace(
        t_learner=lambda updates: updates,
        return_losses=lambda batch, losses: None,
        publishes_every_update=False,
        start=lambda: None,
        stop=lambda: None,
        is_due=lambda: True,
        next_batch=next_batch,
        has_learned=lambda t_max, updates: False,
    )
    agent: Any = SimpleNamespace(
        update=lambda batch, t_learner: Update(torch.ones(2), {"grad_norm": torch.tensor(1.0)}),
        acting_weights=lambda: {"w": weights},
    )
    slot = LearnerSlot(far, keys, Lease(far, keys.learner_lease), epoch, Patience(5.0))
    return Learner(LearnerConfig(10**6, "learner", True, 1, False), slot, agent, source, updates=0)


def _collecting(client: Client, keys: Keys, seen: list[bytes], wanted: int) -> Callable[[], bool]:
    """Whether so many versions have been seen; looks each time that it is called."""

    def is_over() -> bool:
        version = client.get(keys.weights_version)
        if version is not None and version not in seen:
            seen.append(version)
        return len(seen) >= wanted

    return is_over


def test_learning_goes_on_while_weights_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Publications that fall due meanwhile are skipped, the pace is said once, each version is whole."""
    monkeypatch.setattr(publishing, "BYTES_PER_S", 2e8)  # a hundredth of a second
    monkeypatch.setattr(publishing, "SLOW_S", 0.2)
    with _behind(tmp_path, 4e6) as (far, near):
        keys, seen = Keys("run"), list[bytes]()
        learner = _learner(far, keys, begin(near, keys, 400).epoch, torch.ones(500_000))
        learner.run(_collecting(near, keys, seen, 4), lambda: None)
        publisher = learner._publisher
        assert publisher is not None
        updates = [int(version.split(b":")[1]) for version in seen]
        assert updates[0] == 0
        assert all(later - earlier > 10 for earlier, later in pairwise(updates[1:]))
        assert caplog.text.count("The line to Redis is slow: 2.0 MB of weights take") == 1
        until(lambda: publisher.is_rested, lambda: "the last version never arrived")
        weights = WeightsReader(near, keys).poll()
        assert weights is not None and weights.updates >= updates[-1]


def test_a_publication_of_an_epoch_that_is_over_ends_learning(tmp_path: Path) -> None:
    """At the next one, though nobody waits for it."""
    with _behind(tmp_path, 0.0) as (far, near):
        keys = Keys("run")
        learner = _learner(far, keys, begin(near, keys, 400).epoch, torch.ones(2))
        begin(near, keys, 400)
        with pytest.raises(ReplayLost, match="another learner has begun"):
            learner.run(lambda: False, lambda: None)
