"""The protocol before SABER, which Atari 100k keeps: minimal actions, no-op starts, episodes of one life."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from acting.episodes import FinishedEpisode, tracker_of
from envs.action_names import action_names
from envs.atari.game import AleGame, AleInProcess
from envs.atari.games import AleThreads
from envs.atari.lives import LifeEpisodes
from envs.atari.noops import NoopDraws
from envs.config import EnvConfig, EnvError
from envs.contract import SeededVectorEnv
from envs.registry import describe_env, make_env, make_playback
from evaluation.evaluator import evaluate
from evaluation.policies import RandomBaseline

MakeConfig = Callable[..., EnvConfig]
N, SEEDS = 2, [7, 2**31 - 1]
ALL = {"reset_mask": np.ones(N, np.bool_)}
FIRE = 1
DICE = np.random.default_rng(5)


def assert_equal(one: Any, other: Any) -> None:
    """All that a step or a reset returns, but infos that only one of them tells."""
    for mine, yours in zip(one[:-1], other[:-1], strict=True):
        assert mine.dtype == yours.dtype
        np.testing.assert_array_equal(mine, yours)
    for name in one[-1].keys() & other[-1].keys():
        np.testing.assert_array_equal(one[-1][name], other[-1][name])


@pytest.mark.parametrize(("game", "actions"), [("pong", 6), ("breakout", 4), ("freeway", 3), ("alien", 18)])
def test_minimal_actions_are_those_that_the_game_reads(
    game: str, actions: int, make_config: MakeConfig
) -> None:
    config = make_config(game, minimal_actions=True)
    assert describe_env(config).num_actions == actions
    assert make_env(config, [1]).single_action_space.n == actions  # type: ignore[union-attr]
    assert describe_env(make_config(game)).num_actions == 18
    names = action_names(game, actions)
    assert len(names) == actions
    assert set(names) <= set(action_names(game, 18))
    with pytest.raises(EnvError, match=f"from 0 to {actions - 1}"):
        env = make_env(config, [1])
        env.reset()
        env.step([actions])


def test_minimal_actions_do_what_their_names_say(make_config: MakeConfig) -> None:
    assert action_names("breakout", 4) == ("noop", "fire", "right", "left")
    config = make_config("breakout", minimal_actions=True)
    few, every, film = make_env(config, [3]), make_env(make_config("breakout"), [3]), make_playback(config, 3)
    assert_equal(few.reset(), every.reset())
    film.first()
    for action in DICE.integers(0, 4, 150):
        step = few.step([action])
        assert_equal(step, every.step([(0, FIRE, 3, 4)[action]]))
        np.testing.assert_array_equal(step[0][0], film.step(int(action))[0])


@pytest.mark.parametrize("game", ["breakout", "name_this_game"])
def test_no_op_starts_are_the_librarys(game: str, make_config: MakeConfig) -> None:
    """Of seeded starts and of those that follow, under sticky actions; the second game begins late."""
    config = make_config(game, noop_max=30, max_episode_steps=7)
    serial, threads = AleInProcess(config, N), AleThreads(config, N)
    starts = [games.reset(seed=np.array(SEEDS), options=ALL) for games in (serial, threads)]
    assert_equal(*starts)
    for actions in DICE.integers(0, 18, (80, N)):
        assert_equal(serial.step(actions), threads.step(actions))


def test_the_number_of_no_ops(make_config: MakeConfig) -> None:
    """From 0 to 29. At draw 800 of seed 14,993 the older way of GCC's library would have given 24."""
    games, draws = AleThreads(make_config("pong", noop_max=30), 1), NoopDraws(30)
    draws.seed(14_993)
    expected = [draws.draw() for _ in range(801)]
    mask = {"reset_mask": np.ones(1, np.bool_)}
    infos = [games.reset(seed=seed, options=mask)[1] for seed in (np.array([14_993]), *[None] * 800)]
    assert [int(info["episode_frame_number"][0]) for info in infos] == expected
    assert set(expected) == set(range(30))
    assert expected[800] == 23


def test_a_film_begins_after_the_no_ops(make_config: MakeConfig) -> None:
    config = make_config("space_invaders", noop_max=30)
    env, film = make_env(config, [4]), make_playback(config, 4)
    np.testing.assert_array_equal(env.reset()[0][0], film.first())
    for action in DICE.integers(0, 18, 60):
        np.testing.assert_array_equal(env.step([action])[0][0], film.step(int(action))[0])


@pytest.mark.parametrize("game", ["breakout", "montezuma_revenge"])
def test_a_lost_life_ends_an_episode_alike_everywhere(game: str, make_config: MakeConfig) -> None:
    """Threads (the second game: processes) and one process, saved and continued on the way."""
    config = make_config(game, terminal_on_life_loss=True, noop_max=30, minimal_actions=True)
    serial_config = make_config(
        game, terminal_on_life_loss=True, noop_max=30, minimal_actions=True, serial=True
    )
    env, serial = make_env(config, SEEDS), make_env(serial_config, SEEDS)
    assert_equal(env.reset(), serial.reset())
    lost, ended = 0, 0
    for number, actions in enumerate(DICE.integers(0, 4, (500, N))):
        if number == 250:
            state, serial = serial.state_dict(), make_env(serial_config, [1, 2])
            serial.reset()
            serial.load_state_dict(state or {})
        step = env.step(actions)
        assert_equal(step, serial.step(actions))
        lost, ended = lost + step[4]["life_lost"].sum(), ended + (step[2] | step[3]).sum()
    assert ended > lost > 0
    env.close()


def whole_games(env: SeededVectorEnv, config: EnvConfig, steps: int) -> tuple[list[FinishedEpisode], int]:
    """The games that the tracker reports, and the number of episodes."""
    env.reset()
    tracker, active, found, episodes = tracker_of(describe_env(config), 1), np.ones(1, np.bool_), [], 0
    for _ in range(steps):
        action = np.array([FIRE])
        _, rewards, terminated, truncated, infos = env.step(action)
        found += tracker.step(action, rewards, terminated, truncated, active, infos)
        episodes += int((active & (terminated | truncated)).sum())
        active = ~(terminated | truncated)
    return found, episodes


def test_the_game_goes_on_and_its_score_is_whole(make_config: MakeConfig) -> None:
    """Beside a game by hand: at a lost life the next step is without action, and no point is lost."""
    config = make_config("space_invaders", proba_sticky_actions=0.0, terminal_on_life_loss=True)
    games, episodes = whole_games(make_env(config, [1]), config, 900)
    assert 3 * len(games) <= episodes < 3 * (len(games) + 1)  # of three lives each
    game, scores, score, action = AleGame(config), [], 0, FIRE
    game.reset(1)
    for _ in range(900):
        lives = game.ale.lives()
        _, reward, terminated, _ = game.step(action)
        score += reward
        action = 0 if 0 < game.ale.lives() < lives else FIRE
        if terminated:
            scores.append(float(score))
            game.reset(None)
            score, action = 0, FIRE
    assert [each.score_saber for each in games] == scores[: len(games)]
    assert games
    assert sum(scores) > 0


class Script(SeededVectorEnv):
    """A game of five steps with three lives, whose steps are worth 1, 2, 4, 8 and 16 points."""

    LIVES = (2, 2, 2, 1, 0)

    def __init__(self) -> None:
        super().__init__(Box(0, 255, (1,), np.uint8), Discrete(2), [0])
        self.actions: list[int] = []

    def _restart(self, mask: Any, seeds: Any) -> Any:
        self._step = 0
        return np.zeros((1, 1), np.uint8), {"lives": np.array([3])}

    def _advance(self, actions: Any) -> Any:
        step, self._step = self._step, (self._step + 1) % 6  # the sixth begins the next game
        self.actions.append(int(actions[0]))
        reward, lives, over = np.array([2.0**step % 32]), (*self.LIVES, 3)[step], np.array([step == 4])
        return np.zeros((1, 1), np.uint8), reward, over, np.zeros(1, np.bool_), {"lives": np.array([lives])}


def test_points_between_two_episodes_come_with_the_next_step() -> None:
    """Lives are lost in steps 1 and 4, so 2 and 5 are without action. The game ends in 5: it is told with
    the step that begins the next game, and one more without action begins its first episode.
    """
    games = Script()
    env = LifeEpisodes(games, [0])
    env.reset()
    steps = [env.step([1]) for _ in range(7)]
    assert games.actions == [1, 0, 1, 1, 0, 1, 0]
    assert [float(step[1][0]) for step in steps] == [1, 0, 2 + 4, 8, 0, 16, 0]
    assert [bool(step[2][0]) for step in steps] == [True, False, False, True, False, True, False]
    assert [bool(step[4]["life_lost"][0]) for step in steps] == [True, *[False] * 2, True, *[False] * 3]
    assert not any(step[3][0] for step in steps)


def test_a_game_that_ends_between_two_episodes_is_reported(make_config: MakeConfig) -> None:
    """Its cap falls into the step that begins an episode after a lost life."""
    settings = {"proba_sticky_actions": 0.0, "terminal_on_life_loss": True}
    env = make_env(make_config("breakout", **settings), [1])
    env.reset()
    loss = 1
    while not env.step([FIRE])[4]["life_lost"][0]:
        loss += 1
    env = make_env(config := make_config("breakout", **settings, max_episode_steps=loss + 1), [1])
    games, episodes = whole_games(env, config, loss + 2)
    assert (len(games), episodes) == (1, 2)
    assert games[0].length == loss + 1
    restarted = env.step([FIRE])
    assert not (restarted[2] | restarted[3]).any()  # the next episode begins


def test_an_evaluation_plays_whole_games(make_config: MakeConfig) -> None:
    config = make_config("breakout", max_episode_steps=400)
    policy = RandomBaseline(describe_env(config))
    training = make_config("breakout", max_episode_steps=400, terminal_on_life_loss=True)
    whole, lived = (evaluate(policy, each, 2, 1, 2) for each in (config, training))
    assert (whole.scores, whole.lengths) == (lived.scores, lived.lengths)
    assert not lived.env_config.terminal_on_life_loss
