"""The contract of envs/contract.py, kept by every family."""

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv

from envs.config import EnvConfig, EnvError, EnvFailure
from envs.contract import SeededVectorEnv
from envs.registry import describe_env
from envs.seeding import environment_seeds
from tests.envs.opened import make_env

GAMES = ["pong", "space_invaders", "probe:catch", "minatar:breakout", "CartPole-v1", "Pendulum-v1"]
STOCHASTIC = {"pong": 60, "space_invaders": 120, "probe:catch": 10, "minatar:breakout": 10}
"""Steps after which two seeds of a game certainly look different; 1 for all others."""

Array = npt.NDArray[Any]


@pytest.fixture(params=GAMES)
def config(request: pytest.FixtureRequest, make_config: Callable[..., EnvConfig]) -> EnvConfig:
    return make_config(request.param, max_stuck_time=2.0)  # so that ALE's episodes end soon as well


def actions_of(env: SeededVectorEnv, generator: np.random.Generator) -> Array:
    space = env.single_action_space
    if isinstance(space, Discrete):
        return generator.integers(space.n, size=env.num_envs)
    return generator.uniform(space.low, space.high, (env.num_envs, *space.shape)).astype(np.float32)


def play(env: SeededVectorEnv, steps: int) -> list[tuple[Array, Array, Array, Array]]:
    generator = np.random.default_rng(0)
    return [env.step(actions_of(env, generator))[:4] for _ in range(steps)]


def begin(config: EnvConfig, seeds: list[int]) -> SeededVectorEnv:
    env = make_env(config, seeds)
    env.reset()
    return env


def same(left: Any, right: Any) -> bool:
    pairs = ((a, b) for x, y in zip(left, right, strict=True) for a, b in zip(x, y, strict=True))
    return all(np.array_equal(a, b) for a, b in pairs)


def test_shapes_and_dtypes_are_as_described(config: EnvConfig) -> None:
    description = describe_env(config)
    env = make_env(config, [3, 1, 2])
    frames, _ = env.reset()
    assert isinstance(env, VectorEnv)
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert frames.shape == env.observation_space.shape == (3, *description.frame_shape)
    assert frames.dtype == env.observation_space.dtype == description.frame_dtype
    assert env.single_observation_space.contains(frames[0])
    frames, rewards, terminated, truncated, _ = env.step(actions_of(env, np.random.default_rng(0)))
    assert frames.shape == env.observation_space.shape
    assert frames.dtype == description.frame_dtype
    assert rewards.shape == (3,)
    assert rewards.dtype == np.float64
    assert terminated.shape == truncated.shape == (3,)
    assert terminated.dtype == truncated.dtype == np.bool_
    assert (description.num_actions is None) == (description.action_low is not None)


def test_same_seeds_give_the_same_episodes_and_neighbours_differ(config: EnvConfig) -> None:
    config, steps = replace(config, max_stuck_time=60.0), STOCHASTIC.get(config.game, 1)
    one, other = play(begin(config, [11, 12]), steps), play(begin(config, [11, 12]), steps)
    assert same(one, other)
    env = begin(config, [11, 12])
    generator = np.random.default_rng(0)
    alike = []
    for _ in range(steps):
        frames = env.step(np.repeat(actions_of(env, generator)[:1], 2, axis=0))[0]
        alike.append(np.array_equal(frames[0], frames[1]))
    assert not all(alike)


def test_an_environment_does_not_depend_on_its_neighbours(config: EnvConfig) -> None:
    alone, beside = begin(config, [5]), begin(config, [9, 5])
    generator = np.random.default_rng(0)
    for _ in range(60):
        actions = actions_of(beside, generator)
        ours, theirs = alone.step(actions[1:])[:4], beside.step(actions)[:4]
        assert all(np.array_equal(a[0], b[1]) for a, b in zip(ours, theirs, strict=True))


def test_a_full_reset_starts_again_from_the_same_seeds(config: EnvConfig) -> None:
    env = make_env(config, [4, 8])
    before, _ = env.reset()
    first = play(env, 20)
    after, _ = env.reset()
    assert np.array_equal(before, after)
    assert same(first, play(env, 20))


def test_next_step_autoreset(config: EnvConfig) -> None:
    env = begin(config, [0, 1, 2])
    firsts, _ = make_env(config, [7, 8, 9]).reset()
    ended, ends = np.zeros(3, np.bool_), 0
    generator = np.random.default_rng(0)
    for _ in range(250):
        frames, rewards, terminated, truncated, _ = env.step(actions_of(env, generator))
        assert not rewards[ended].any()
        assert not (terminated | truncated)[ended].any()
        if ended.any() and config.game in {"pong", "space_invaders"}:  # whose first frame is always the same
            assert np.array_equal(frames[ended], firsts[ended])
        ended = terminated | truncated
        ends += int(ended.sum())
    assert ends >= 3


def test_an_ended_environment_ignores_its_action(config: EnvConfig) -> None:
    left, right = begin(config, [0, 1]), begin(config, [0, 1])
    generator = np.random.default_rng(0)
    ended = np.zeros(2, np.bool_)
    met = False
    for _ in range(210):
        actions = actions_of(left, generator)
        others = np.where(ended.reshape(-1, *[1] * (actions.ndim - 1)), actions_of(left, generator), actions)
        ours, theirs = left.step(actions)[:4], right.step(others)[:4]
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
        met, ended = met or bool(ended.any()), ours[2] | ours[3]
    assert met


def test_a_partial_reset_restarts_the_marked_ones_alone(config: EnvConfig) -> None:
    env, twin = begin(config, [0, 1, 2]), begin(config, [0, 1, 2])
    frames, expected = play(env, 5)[-1][0], play(twin, 5)[-1][0]
    mask = np.array([True, False, True])
    frames, _ = env.reset(seed=[21, 22], options={"reset_mask": mask})
    fresh = make_env(config, [21, 22])
    first, _ = fresh.reset()
    assert np.array_equal(frames[1], expected[1])
    assert np.array_equal(frames[mask], first)
    generator = np.random.default_rng(1)
    for _ in range(30):
        actions = actions_of(env, generator)
        got, reference, untouched = (
            env.step(actions)[:4],
            fresh.step(actions[mask])[:4],
            twin.step(actions)[:4],
        )
        assert all(np.array_equal(a[mask], b) for a, b in zip(got, reference, strict=True))
        assert all(np.array_equal(a[1], b[1]) for a, b in zip(got, untouched, strict=True))


def test_a_partial_reset_cancels_a_pending_autoreset(config: EnvConfig) -> None:
    env = begin(config, [0, 1])
    generator = np.random.default_rng(0)
    ended = np.zeros(2, np.bool_)
    while not ended.any():
        _, _, terminated, truncated, _ = env.step(actions_of(env, generator))
        ended = terminated | truncated
    seeds = [31, 32][: int(ended.sum())]
    frames, _ = env.reset(seed=seeds, options={"reset_mask": ended})
    fresh = make_env(config, seeds)
    assert np.array_equal(frames[ended], fresh.reset()[0])
    for _ in range(20):
        actions = actions_of(env, generator)
        got, reference = env.step(actions)[:4], fresh.step(actions[ended])[:4]
        assert all(np.array_equal(a[ended], b) for a, b in zip(got, reference, strict=True))


def test_returned_arrays_are_not_written_to_again(config: EnvConfig) -> None:
    env = begin(config, [0, 1])
    steps = play(env, 12)
    copies = [tuple(a.copy() for a in step) for step in steps]
    play(env, 12)
    assert same(steps, copies)


def test_wrong_actions_are_refused(config: EnvConfig) -> None:
    env = begin(config, [0, 1])
    good = actions_of(env, np.random.default_rng(0))
    with pytest.raises(EnvError, match="shape"):
        env.step(good[:1])
    wrong: list[Array]
    if isinstance(env.single_action_space, Discrete):
        wrong = [good * 0 - 1, good * 0 + env.single_action_space.n, good + 0.5]
    else:
        wrong = [good * np.nan, good * 0 + 1e6]
    for actions in wrong:
        with pytest.raises(EnvError, match="must"):
            env.step(actions)
    env.step(good)


def test_wrong_resets_are_refused(config: EnvConfig) -> None:
    env = make_env(config, [0, 1])
    with pytest.raises(EnvError, match="reset before"):
        env.step(actions_of(env, np.random.default_rng(0)))
    with pytest.raises(EnvError, match="first reset"):
        env.reset(seed=[3], options={"reset_mask": np.array([True, False])})
    env.reset()
    for seed in (5, [5], [5, 6, 7], [-1, 3], [2**31, 3]):
        with pytest.raises(EnvError, match="seed"):
            env.reset(seed=seed)
    for mask in ([True, False], np.array([True]), np.array([1, 0]), np.array([False, False])):
        with pytest.raises(EnvError, match="mask"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(EnvError, match="At least one"):
        make_env(config, [])


def test_seeds_of_any_actor_are_accepted(config: EnvConfig) -> None:
    env = make_env(config, environment_seeds(seed=2, actor=1, start=3, count=2))
    assert env.reset()[0].shape[0] == 2


class Quits(gymnasium.Env[Any, Any]):
    """Ends its program `at` a place, as those that were made for a window do."""

    observation_space, action_space = Box(0, 1, (1,)), Discrete(2)

    def __init__(self, how: type[BaseException], at: str) -> None:
        self.how, self.at = how, at
        self.quit_at("made")

    def quit_at(self, place: str) -> None:
        if place == self.at:
            raise self.how

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.quit_at("reset")
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.quit_at("step")
        return np.zeros(1, np.float32), 1e300, False, False, {}


@pytest.fixture
def make_quits(make_config: Callable[..., EnvConfig]) -> Iterator[Callable[..., SeededVectorEnv]]:
    """Makes one that has had a reset."""

    def make(**words: Any) -> SeededVectorEnv:
        gymnasium.register("test/Quits-v0", entry_point=partial(Quits, **words))
        return begin(make_config("test/Quits-v0"), [0])

    yield make
    gymnasium.registry.pop("test/Quits-v0", None)


@pytest.fixture
def answers_ctrl_c() -> Iterator[None]:
    """Ctrl-C is a process's own affair, as in a learner or an actor."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("at", ["made", "reset", "step"])
@pytest.mark.parametrize("how", [SystemExit, KeyboardInterrupt])
def test_an_environment_that_ends_its_program_is_at_fault(
    how: type[BaseException], at: str, make_quits: Callable[..., SeededVectorEnv], answers_ctrl_c: None
) -> None:
    said = rf"The environment test/Quits-v0 failed: {how.__name__} \(test_contract.py, line \d+\)."
    with pytest.raises(EnvFailure, match=said):
        make_quits(how=how, at=at).step([0])


def test_ctrl_c_is_no_fault_of_an_environment(make_quits: Callable[..., SeededVectorEnv]) -> None:
    with pytest.raises(KeyboardInterrupt):
        make_quits(how=KeyboardInterrupt, at="step").step([0])


def test_a_reward_above_what_the_learner_keeps_is_a_fault(make_quits: Callable[..., SeededVectorEnv]) -> None:
    env = make_quits(how=SystemExit, at="nowhere")
    assert env.step([0])[1].tolist() == [1e300]
    env.largest_reward = 1e38
    with pytest.raises(EnvFailure, match=r"a reward with 1e\+300 \(row 0\), too large to learn from"):
        env.step([0])
