"""A process that was asked to stop ends where its environment hangs, not where it waits for other players."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, cast

import pytest

from acting.watch import EnvironmentWatch


@dataclass
class Stuck:
    """A player in a step that began long ago."""

    waits_for_others: bool
    asked_at: float = 0.0


@pytest.mark.parametrize("waits", [False, True])
def test_only_a_game_hangs(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    player = cast(Any, Stuck(waits, time.monotonic() - 60))
    with EnvironmentWatch(player, "Actor 0", lambda: True):
        time.sleep(0.8)  # it looks twice a second
    assert bool(ended) == (not waits)
