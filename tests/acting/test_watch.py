"""A process that was asked to stop ends where its environment hangs, not where it waits for other players."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable

import pytest

from acting import watch
from acting.links.link import ActorConfig
from acting.watch import EnvironmentWatch
from tests.processes import until

CONFIG = ActorConfig(3, "my_env.py:MyEnv", 10**6, "", 0, 1, False, 0.0, env_patience=20.0)
LOOKS = 3


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_EVERY_S", 0.01)


def _watched(silent: float | None, stopped: Callable[[], bool]) -> None:
    """Let a watch look a few times at an environment that was asked `silent` seconds ago, or never."""
    asked_at, looks = None if silent is None else time.monotonic() - silent, list[None]()

    def ask() -> float | None:
        looks.append(None)
        return asked_at

    with EnvironmentWatch(CONFIG, ask, lambda: "after step 7 of episode 2", stopped):
        until(lambda: len(looks) > LOOKS, lambda: "It does not look.")


@pytest.mark.parametrize("waits_for_others", [False, True])
def test_only_a_game_hangs(waits_for_others: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    _watched(None if waits_for_others else 60, lambda: True)
    assert bool(ended) == (not waits_for_others)


def test_a_snapshot_that_cannot_be_saved_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where an environment hangs and the disk is full: the process ends, and its log has the reason."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)

    def save() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with EnvironmentWatch(CONFIG, lambda: time.monotonic() - 60, str, lambda: True, save):
        until(lambda: bool(ended), lambda: "It does not end.")
    assert ended[0] == 1 and "The last snapshot was not saved." in caplog.messages
    assert "No space left on device" in caplog.text


@pytest.mark.parametrize("silent", [10, 60])
def test_who_is_silent_for_longer_than_the_patience_is_named_once(
    silent: int, caplog: pytest.LogCaptureFixture
) -> None:
    _watched(silent, lambda: False)
    where = r"after step 7 of episode 2 \(\w+.py, line \d+\)"
    said = rf"Actor 3: my_env.py:MyEnv has not answered for 6\d s, {where}\."
    assert len(caplog.messages) == (silent == 60)
    assert all(re.fullmatch(said, each) for each in caplog.messages)
