"""A real, throwaway redis-server for the tests that need one; long tests come first."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.ray_session import OWN
from memory.runs.keys import Keys
from memory.server.connection import Client, RedisConfig, make_client
from tests.server import serving


def pytest_configure() -> None:
    """A suite in the background ignores Ctrl-C, and one under nohup hang-ups; what it starts must not.

    Ray reads OWN when it is first imported, by whichever test's file: else it waits for a cluster of this
    machine at its outer address.
    """
    os.environ.update(OWN)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # a program that is started has the default instead


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: one that came last would run while the other workers have nothing left to do."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, item.path.parent.name != "values"))


@pytest.fixture(autouse=True)
def handlers_of_signals() -> Iterator[None]:
    """What a program that ran in a test's own process made of signals is not left to the next test."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[str]:
    """Path of the Unix socket of a server that keeps nothing."""
    with tempfile.TemporaryDirectory(prefix="redis-", dir="/tmp") as folder, serving(Path(folder)) as socket:
        yield socket


@pytest.fixture
def client(redis_socket: str) -> Iterator[Client]:
    """A client of the throwaway server; the server is emptied afterwards, and has no users but one."""
    client = make_client(RedisConfig(redis_socket, 0))
    yield client
    client.flushall()
    if users := {*client.acl_users()} - {"default"}:
        client.acl_deluser(*users)
    client.close()


@pytest.fixture
def keys() -> Keys:
    """Keys of some run."""
    return Keys("test run")
