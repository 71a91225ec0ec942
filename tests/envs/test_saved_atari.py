"""ALE games that are saved and gone on with, bit by bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from envs.atari.game import AleInProcess
from envs.atari.games import AleThreads
from envs.config import EnvConfig, EnvError
from envs.contract import SeededVectorEnv
from envs.registry import make_env

MakeConfig = Callable[..., EnvConfig]
N, SEEDS, OTHERS = 2, [7, 8], [70, 80]
PART = 40  # steps, as many as an episode takes at most
ACTIONS = np.random.default_rng(3).integers(0, 18, (4 * PART, N))


def _equal(one: Any, other: Any) -> None:
    for mine, yours in zip(one[:4], other[:4], strict=True):
        assert mine.dtype == yours.dtype
        np.testing.assert_array_equal(mine, yours)
    assert all((one[4][name] == other[4][name]).all() for name in one[4])


@pytest.mark.parametrize("game", ["pong", "breakout", "montezuma_revenge"])
def test_what_goes_on_is_what_would_have_come(game: str, make_config: MakeConfig) -> None:
    """In the middle of episodes and where one has just ended, in games that hold the last action for a while
    by chance; from other seeds, and from the state of a run that went on from one itself.
    """
    config = make_config(game, serial=True, proba_sticky_actions=0.7, max_episode_steps=40)
    env = make_env(config, SEEDS)
    env.reset()
    for actions in ACTIONS[:PART]:
        env.step(actions)
    saved = [env.state_dict()]
    expected = [env.step(actions) for actions in ACTIONS[PART:]]
    assert any((terminated | truncated).any() for _, _, terminated, truncated, _ in expected)
    for part in range(1, len(ACTIONS) // PART):
        env = _from(config, saved[-1])
        for step in range(part * PART, (part + 1) * PART):
            _equal(env.step(ACTIONS[step]), expected[step - PART])
        saved.append(env.state_dict())


def _from(config: EnvConfig, state: Any) -> SeededVectorEnv:
    env = make_env(config, OTHERS)
    env.reset()
    env.load_state_dict(state)
    return env


@pytest.mark.parametrize(
    "game",
    [
        "breakout",
        "skiing",
        *(pytest.param(game, marks=pytest.mark.slow) for game in ("lost_luggage", "name_this_game")),
    ],
)
def test_the_same_as_atari_vector_env(game: str, make_config: MakeConfig) -> None:
    """Of all 18 actions, of which the second and third know 9; the last two begin late in their episodes."""
    config = make_config(game, max_episode_steps=50)
    ours, theirs = AleInProcess(config, N), AleThreads(config, N)
    for games in (ours, theirs):
        games.reset(seed=np.array(SEEDS), options={"reset_mask": np.ones(N, np.bool_)})
    for actions in ACTIONS:
        mine, yours = ours.step(actions), theirs.step(actions)
        for one, other in zip(mine[:4], yours[:4], strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        assert mine[4] == {}  # no rooms


def test_a_state_of_another_game_or_a_damaged_one_is_refused(make_config: MakeConfig) -> None:
    states: dict[str, Any] = {}
    for game in ("pong", "breakout"):
        env = make_env(make_config(game, serial=True), SEEDS)
        env.reset()
        states[game] = env.state_dict()
    with pytest.raises(EnvError, match="of an ALE game is"):
        env.load_state_dict(states["pong"])
    damaged = states["breakout"]
    damaged["ale"]["games"][1]["ale"] = damaged["ale"]["games"][1]["ale"][:300]
    with pytest.raises(EnvError, match="damaged"):
        env.load_state_dict(damaged)


def test_games_of_other_threads_cannot_be_saved(make_config: MakeConfig) -> None:
    env = make_env(make_config("pong"), SEEDS)
    env.reset()
    assert env.state_dict() is None
    with pytest.raises(EnvError, match="not played in this process"):
        env.load_state_dict({})
    env.close()
