"""A process that was asked to stop ends where its environment hangs, not where it waits for other players."""

from __future__ import annotations

import os
import re
import time

import pytest

from acting.link import ActorConfig
from acting.watch import EnvironmentWatch

CONFIG = ActorConfig(3, "my_env.py:MyEnv", 10**6, "", 0, 1, False, 0.0, env_patience=20.0)


@pytest.mark.parametrize("waits", [False, True])
def test_only_a_game_hangs(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    asked_at = None if waits else time.monotonic() - 60
    with EnvironmentWatch(CONFIG, lambda: asked_at, lambda: "", lambda: True):
        time.sleep(0.8)  # it looks twice a second
    assert bool(ended) == (not waits)


@pytest.mark.parametrize("silent", [10, 60])
def test_who_is_silent_for_longer_than_the_patience_is_named_once(
    silent: int, caplog: pytest.LogCaptureFixture
) -> None:
    asked_at = time.monotonic() - silent
    with EnvironmentWatch(CONFIG, lambda: asked_at, lambda: "after step 7 of episode 2", lambda: False):
        time.sleep(1.3)  # it looks twice a second
    said = r"Actor 3: my_env.py:MyEnv has not answered for 6\d s, after step 7 of episode 2 \(test_watch.py, "
    assert len(caplog.messages) == (silent == 60)
    assert all(re.match(said, each) for each in caplog.messages)
