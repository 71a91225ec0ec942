"""What an actor's window shows."""

from __future__ import annotations

import pytest

from acting.live_window import LiveWindow
from args import read_args
from envs.config import EnvConfig
from envs.registry import describe_env
from reporting.film import FilmError


@pytest.mark.parametrize("game", ["CartPole-v1", "minatar:freeway"])
def test_what_is_no_picture_is_said(game: str) -> None:
    with pytest.raises(FilmError, match="these observations are none"):
        LiveWindow(game, describe_env(read_args(["--game", game]).select(EnvConfig)))
