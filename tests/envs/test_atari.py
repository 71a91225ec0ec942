"""SABER's settings on real games."""

from collections.abc import Callable

import numpy as np
import pytest

from envs.atari.games import episode_cap, stuck_cap
from envs.config import EnvConfig
from envs.registry import make_env

MakeConfig = Callable[..., EnvConfig]
NOOP, FIRE = np.array([0]), np.array([1])


def test_caps(make_config: MakeConfig) -> None:
    assert episode_cap(make_config("pong")) == 100 * 3600 * 60
    assert episode_cap(make_config("pong", disable_saber_mode=True)) == 30 * 60 * 60
    assert stuck_cap(make_config("pong")) == 300 * 60 / 4
    assert stuck_cap(make_config("pong", disable_saber_mode=True)) == np.inf


def test_the_cap_truncates_and_is_counted_in_emulator_frames(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envs.atari.games.episode_cap", lambda _: 402)
    env = make_env(make_config("pong", disable_saber_mode=True, max_stuck_time=0.1), [0])
    env.reset()
    flags = [env.step(NOOP)[2:4] for _ in range(101)]
    assert not any(terminated for terminated, _ in flags)
    assert [bool(truncated) for _, truncated in flags] == [False] * 100 + [True]


@pytest.mark.parametrize("stuck_is_terminal", [False, True])
def test_an_episode_without_reward_is_stopped(make_config: MakeConfig, stuck_is_terminal: bool) -> None:
    config = make_config("freeway", max_stuck_time=2.0, stuck_is_terminal=stuck_is_terminal)
    env = make_env(config, [0])
    first, _ = env.reset()
    for _ in range(2):  # the second round shows that the count starts anew
        ends = []
        for _ in range(30):  # 2 s of 60 frames, 4 frames a step
            _, _, terminated, truncated, _ = env.step(NOOP)
            ends.append((bool(terminated[0]), bool(truncated[0])))
        assert ends == [(False, False)] * 29 + [(stuck_is_terminal, not stuck_is_terminal)]
        frames, rewards, terminated, truncated, infos = env.step(NOOP)
        assert np.array_equal(frames, first)
        assert infos["episode_frame_number"][0] == 0
        assert not rewards.any()
        assert not (terminated | truncated).any()


def test_the_stop_leaves_the_neighbours_alone(make_config: MakeConfig) -> None:
    config, free = make_config("freeway", max_stuck_time=10.0), make_config("freeway")
    env, reference = make_env(config, [0, 1]), make_env(free, [1])
    env.reset()
    reference.reset()
    up, stops, crossings = 2, 0, 0
    for _ in range(310):
        frames, rewards, _, truncated, _ = env.step(np.array([0, up]))
        expected = reference.step(np.array([up]))
        assert np.array_equal(frames[1], expected[0][0])
        assert rewards[1] == expected[1][0]
        assert not truncated[1]
        stops, crossings = stops + int(truncated[0]), crossings + int(rewards[1])
    assert stops == 2
    assert crossings > 2


def test_a_reward_starts_the_count_again(make_config: MakeConfig) -> None:
    env = make_env(make_config("space_invaders", max_stuck_time=15.0), [3])
    env.reset()
    since_reward, lengths = 0, []
    for _ in range(400):
        _, rewards, terminated, truncated, _ = env.step(FIRE)
        since_reward = 0 if rewards[0] else since_reward + 1
        if truncated[0]:
            assert since_reward == 15 * 60 / 4
        if terminated[0] or truncated[0]:
            lengths.append(since_reward)
            since_reward = -1
    assert lengths


def test_rewards_are_raw_and_games_begin_without_help(make_config: MakeConfig) -> None:
    env = make_env(make_config("space_invaders"), [0, 1, 2, 3])
    _, infos = env.reset()
    assert (infos["frame_number"] == 0).all()  # neither no-ops nor FIRE
    generator = np.random.default_rng(0)
    rewards = np.concatenate([env.step(generator.integers(18, size=4))[1] for _ in range(300)])
    assert rewards.max() >= 5
    assert set(rewards[rewards < 100] % 5) == {0.0}  # invaders give 5 to 30 points


def test_the_loss_of_a_life_ends_nothing(make_config: MakeConfig) -> None:
    env = make_env(make_config("space_invaders"), [0])
    _, infos = env.reset()
    lives = [int(infos["lives"][0])]
    terminated = np.zeros(1, np.bool_)
    while not terminated[0]:
        _, _, terminated, _, infos = env.step(NOOP)
        lives.append(int(infos["lives"][0]))
    assert lives[0] == 3
    assert lives[-1] == 0
    assert {3, 2, 1} <= set(lives)


def test_sticky_actions_are_the_only_chance(make_config: MakeConfig) -> None:
    def frames(sticky: float, seed: int) -> list[bytes]:
        env = make_env(make_config("pong", proba_sticky_actions=sticky), [seed])
        env.reset()
        return [env.step(np.array([2 + step // 3 % 4]))[0].tobytes() for step in range(100)]

    assert frames(0.0, 1) == frames(0.0, 2)
    assert frames(0.25, 1) != frames(0.25, 2)
