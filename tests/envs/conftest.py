"""What the tests of this room share."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from envs.config import EnvConfig
from tests.envs.opened import close_all

MakeConfig = Callable[..., EnvConfig]

SABER = EnvConfig(
    game="pong",
    action_repeat=4,
    proba_sticky_actions=0.25,
    disable_saber_mode=False,
    max_stuck_time=300.0,
    stuck_is_terminal=False,
)


@pytest.fixture(autouse=True)
def environments_end_with_their_test() -> Iterator[None]:
    """Those that `tests.envs.opened` made."""
    yield
    close_all()


@pytest.fixture
def make_config() -> MakeConfig:
    """Returns SABER's settings for a game, with changes."""

    def make(game: str, **changes: object) -> EnvConfig:
        return replace(SABER, game=game, **changes)  # type: ignore[arg-type]

    return make
