"""The probe that chance does not solve."""

from collections.abc import Callable

import numpy as np
import pytest

from envs.config import EnvConfig, EnvError
from envs.contract import SeededVectorEnv
from envs.registry import describe_env, make_env, make_playback

MakeConfig = Callable[..., EnvConfig]
LENGTH = 12


def turns_of(env: SeededVectorEnv, length: int) -> list[int]:
    """The right turns, found by trying both at each place."""
    turns: list[int] = []
    while len(turns) < length:
        env.reset()
        for action in [*turns, 0]:
            *_, infos = env.step(np.full(env.num_envs, action))
        turns.append(0 if infos["room"][0] == len(turns) + 1 else 1)
    return turns


@pytest.fixture
def lock(make_config: MakeConfig) -> SeededVectorEnv:
    env = make_env(make_config(f"probe:lock:{LENGTH}"), [1, 2])
    env.reset()
    return env


def test_the_right_turns_open_it_in_all_environments(lock: SeededVectorEnv) -> None:
    turns = turns_of(lock, LENGTH)
    assert {0, 1} == set(turns)
    frames, infos = lock.reset()
    pictures = [frames[0]]
    for step, action in enumerate(turns, start=1):
        frames, rewards, terminated, truncated, infos = lock.step(np.array([action, action]))
        opened = step == LENGTH
        assert rewards.tolist() == [float(opened)] * 2
        assert terminated.tolist() == [opened] * 2
        assert not truncated.any()
        assert infos["room"].tolist() == [step] * 2
        pictures.append(frames[0])
    flat = np.stack(pictures).reshape(LENGTH + 1, -1)
    assert np.array_equal(flat.astype(int) @ flat.astype(int).T, 255**2 * np.eye(LENGTH + 1))
    frames, rewards, terminated, _, infos = lock.step(np.array([turns[0], 1 - turns[0]]))
    assert np.array_equal(frames[0], pictures[0])
    assert not (rewards.any() or terminated.any() or infos["room"].any())


def test_a_wrong_turn_leads_back_and_time_runs_out(lock: SeededVectorEnv) -> None:
    turns = turns_of(lock, LENGTH)
    lock.reset()
    lock.step(np.array(turns[:1] * 2))
    places = lock.step(np.array([turns[1], 1 - turns[1]]))[4]["room"]
    assert places.tolist() == [2, 0]
    wrong = 1 - np.array(turns)
    for step in range(3, 2 * LENGTH + 1):
        _, rewards, terminated, truncated, infos = lock.step(wrong[places])
        places = infos["room"]
        assert truncated.tolist() == [step == 2 * LENGTH] * 2
    assert not (rewards.any() or terminated.any())


def test_a_partial_reset_leaves_the_neighbour_alone(lock: SeededVectorEnv) -> None:
    turns = turns_of(lock, LENGTH)
    lock.reset()
    for action in turns[:3]:
        lock.step(np.array([action, action]))
    frames, infos = lock.reset(seed=[5], options={"reset_mask": np.array([True, False])})
    assert infos["room"].tolist() == [0, 3]
    assert frames.reshape(2, -1).argmax(1).tolist() == [0, 3]
    for action in turns[3:]:
        _, _, terminated, _, _ = lock.step(np.array([1 - turns[0], action]))
    assert terminated.tolist() == [False, True]


def test_chance_does_not_open_it(make_config: MakeConfig) -> None:
    env = make_env(make_config("probe:lock:24"), list(range(64)))
    env.reset()
    generator = np.random.default_rng(0)
    steps = [env.step(generator.integers(2, size=64)) for _ in range(2000)]
    assert not any(rewards.any() for _, rewards, *_ in steps)
    assert 10 <= max(infos["room"].max() for *_, infos in steps) < 24


def test_novelty_alone_opens_it(make_config: MakeConfig) -> None:
    """Q-learning (Watkins 1989) from 1 / sqrt(visits) and no reward, in a tenth of those steps."""
    env = make_env(make_config("probe:lock:24"), list(range(16)))
    frames, _ = env.reset()
    visits, values = np.zeros(25), np.ones((25, 2))
    generator = np.random.default_rng(0)
    place = np.zeros(16, np.int64)
    for _ in range(800):
        greedy = (values[place] + 1e-6 * generator.random((16, 2))).argmax(1)
        frames, _, terminated, _, _ = env.step(greedy)
        after = frames.reshape(16, -1).argmax(1)
        if terminated.any():
            break
        np.add.at(visits, after, 1)
        target = visits[after] ** -0.5 + 0.95 * values[after].max(1)
        values[place, greedy] += 0.3 * (target - values[place, greedy])
        place = after
    assert terminated.any()


def test_names_carry_the_length(make_config: MakeConfig) -> None:
    description = describe_env(make_config("probe:lock:24"))
    assert (description.frame_shape, description.frame_dtype) == ((5, 5), "uint8")
    assert description.num_actions == 2
    assert describe_env(make_config("probe:lock:25")).frame_shape == (6, 6)
    for wrong in ("probe:lock", "probe:lock:3", "probe:lock:100", "probe:lock:024"):
        with pytest.raises(EnvError, match="did you mean probe:lock"):
            describe_env(make_config(wrong))


def test_films(make_config: MakeConfig) -> None:
    config = make_config(f"probe:lock:{LENGTH}")
    env, film = make_env(config, [3]), make_playback(config, 3)
    assert np.array_equal(env.reset()[0][0], film.first())
    for action in turns_of(make_env(config, [0]), LENGTH)[:5]:
        frame, (screen,) = film.step(action)
        assert np.array_equal(env.step(np.array([action]))[0][0], frame)
        assert np.array_equal(screen[::16, ::16, 0], frame)
