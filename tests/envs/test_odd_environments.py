"""Environments of Gymnasium's API that do what few do: it ends no run, or what does is one sentence."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, OneOf, Space, flatten

from envs.check import _checked
from envs.config import EnvConfig, EnvError, EnvFailure
from envs.gym.own import unfitted
from envs.gym.spaces import fitted, own_action
from envs.multi.trial import try_game
from envs.registry import describe_env, make_env
from evaluation.evaluator import evaluate
from evaluation.policies import baseline_policy

MakeConfig = Callable[..., EnvConfig]
Register = Callable[..., str]


class Short(gymnasium.Env[Any, Any]):
    """Three steps long, and sees zeros."""

    observation_space: Space[Any] = Box(-1, 1, (2,))
    action_space: Space[Any] = Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.zeros(2, np.float32), 1.0, self.t == 3, False, {}


@pytest.fixture
def register() -> Iterator[Register]:
    """Registers an environment, and returns its id."""

    def add(entry_point: Callable[..., gymnasium.Env[Any, Any]]) -> str:
        gymnasium.register("test/Odd-v0", entry_point=entry_point)
        return "test/Odd-v0"

    yield add
    gymnasium.registry.pop("test/Odd-v0", None)


class Telling(Short):
    """Its infos hold arrays of any length, and a winner that may be nobody."""

    def reset(self, **given: Any) -> Any:
        return super().reset(**given)[0], self._told()

    def step(self, action: Any) -> Any:
        return *super().step(action)[:4], self._told()

    def _told(self) -> dict[str, Any]:
        drawn = int(self.np_random.integers(1, 9))
        return {"visited": np.arange(drawn), "winner": None if drawn < 5 else 1}


def test_copies_whose_infos_differ_are_played(register: Register, make_config: MakeConfig) -> None:
    env = make_env(make_config(register(Telling)), [0, 1, 2, 3])
    env.reset()
    assert sum(env.step([0, 1, 2, 0])[1].sum() for _ in range(8)) == 4 * 6  # two of eight steps begin anew


class Strict(Short):
    """Keeps the actions that come to it, and takes none that is outside of its space."""

    def __init__(self, actions: Space[Any]) -> None:
        self.action_space, self.taken = actions, list[Any]()

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), f"{action!r} is outside"
        self.taken.append(action)
        return super().step(action)


@pytest.mark.parametrize(
    "actions",
    [
        Box(-0.1, 0.1, (1,), np.float64),
        Box(-np.pi, np.pi, (1,), np.float64),
        Box(-1, 1, (1,), np.float16),
        Box(0, 2**31 - 1, (1,), np.int32),
        Box(-0.1, 0.1, (1, 1), np.float64),
    ],
    ids=str,
)
def test_bounds_that_float32_rounds_are_not_left(
    actions: Box, register: Register, make_config: MakeConfig
) -> None:
    env = make_env(make_config(register(partial(Strict, actions))), [0, 1])
    env.reset()
    space = env.single_action_space
    assert isinstance(space, Box)
    for bound in (space.low, space.high):
        env.step(np.stack([bound, bound]))
    inner = Strict(actions)
    assert actions.contains(own_action(fitted(inner, make_config("test/Odd-v0")), inner, space.high))


def test_actions_of_integers_are_rounded(register: Register, make_config: MakeConfig) -> None:
    """Cut off, only the upper bound itself would become that bound."""
    kept = Strict(Box(0, 2, (1,), np.int32))
    env = make_env(make_config(register(lambda: kept)), [0])
    env.reset()
    for number in (0.4, 1.4, 1.6):
        env.step(np.array([[number]]))
    assert [int(each[0]) for each in kept.taken] == [0, 1, 2]


class Unclosed(Short):
    """Ends a viewer that it never had."""

    def close(self) -> None:
        if hasattr(self, "t"):
            closed.append(self)
            raise AttributeError("no viewer")


closed: list[Unclosed] = []


def test_an_environment_that_cannot_be_closed_loses_no_evaluation(
    register: Register, make_config: MakeConfig, caplog: pytest.LogCaptureFixture
) -> None:
    config = make_config(register(lambda: Unclosed()))
    played = evaluate(baseline_policy("random", describe_env(config)), config, 3, 0, 2)
    assert played.scores == (3.0, 3.0, 3.0)
    (said,) = caplog.messages
    assert said.startswith(
        "The environment test/Odd-v0 could not be closed: AttributeError: no viewer (test_odd"
    )
    assert len(closed) == 2


def test_the_check_names_what_closing_raises(register: Register, make_config: MakeConfig) -> None:
    (*_, said) = _checked(unfitted(make_config(register(lambda: Unclosed()))))
    assert said.startswith("close() failed: AttributeError: no viewer (test_odd")


class Blind(Short):
    """Its first frame is NaN."""

    def reset(self, **given: Any) -> Any:
        return super().reset(**given)[0] * np.nan, {}


def test_a_first_frame_of_nan_is_named(register: Register, make_config: MakeConfig) -> None:
    with pytest.raises(EnvFailure, match=r"is at fault: it returned a frame with nan \(row 0\)"):
        make_env(make_config(register(lambda: Blind())), [0, 1]).reset()


class Binary(Short):
    """Sees a one and a zero, as bytes of a space that ends at `highest`."""

    def __init__(self, shape: tuple[int, ...], highest: int, shown: int, part: bool) -> None:
        self._bytes, self._part = Box(0, highest, shape, np.uint8), part
        numbers = Box(0, 9, (2,), np.float32)
        self.observation_space = Dict({"map": self._bytes, "other": numbers}) if part else self._bytes
        self.action_space, self._shown = Discrete(2), shown

    def reset(self, **given: Any) -> Any:
        super().reset(**given)
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        return self._seen(), *super().step(action)[1:]

    def _seen(self) -> Any:
        seen = np.zeros(self._bytes.shape, np.uint8)
        seen.flat[1] = self._shown
        return {"map": seen, "other": np.array([7, 8], np.float32)} if self._part else seen


@pytest.mark.parametrize("shape", [(12,), (10, 10, 4)])
@pytest.mark.parametrize(("highest", "byte"), [(1, 255), (10, 250), (100, 200), (128, 128), (255, 255)])
def test_bytes_of_a_small_range_are_spread(
    shape: tuple[int, ...], highest: int, byte: int, register: Register, make_config: MakeConfig
) -> None:
    """Networks divide bytes by 255, and would hardly see a one."""
    frame = make_env(make_config(register(partial(Binary, shape, highest, highest, False))), [0]).reset()[0]
    assert frame.dtype == np.uint8 and frame.shape == (1, *shape)
    np.testing.assert_array_equal(frame.ravel()[:3], [0, byte, 0])


def test_bytes_of_a_small_range_beside_numbers_are_shares_of_it(
    register: Register, make_config: MakeConfig
) -> None:
    config = make_config(register(partial(Binary, (12,), 1, 1, True)))
    np.testing.assert_array_equal(make_env(config, [0]).reset()[0][0], [0, 1, *[0] * 10, 7, 8])


def test_a_byte_outside_of_its_space_is_named(register: Register, make_config: MakeConfig) -> None:
    env = make_env(make_config(register(partial(Binary, (10, 10), 1, 200, False))), [0])
    with pytest.raises(EnvFailure, match="has a byte of 200, and its space ends at 1"):
        env.reset()


class EitherOr(Short):
    """Sees a number of one kind or the other."""

    observation_space = OneOf((Discrete(3), Box(-1, 1, (2,), np.float32)))

    def reset(self, **given: Any) -> Any:
        super().reset(**given)
        return (1, np.array([0.5, -0.5], np.float32)), {}

    def step(self, action: Any) -> Any:
        return (0, np.int64(2)), *super().step(action)[1:]


def test_one_of_two_kinds_is_a_vector(register: Register, make_config: MakeConfig) -> None:
    """Of the kind's number, and of what is seen, filled up to the longer one."""
    env, space = make_env(make_config(register(EitherOr)), [0]), EitherOr.observation_space
    second, first = (1, np.array([0.5, -0.5], np.float32)), (0, np.int64(2))
    np.testing.assert_array_equal(env.reset()[0][0], flatten(space, second))
    np.testing.assert_array_equal(env.step([0])[0][0], flatten(space, first))


class Guess(Short):
    """Pays for guessing its last draw, one of three."""

    def reset(self, **given: Any) -> Any:
        found = super().reset(**given)
        self.drawn = self.np_random.integers(3)
        return found

    def step(self, action: Any) -> Any:
        s_t, _, *rest = super().step(action)
        reward = float(action == self.drawn)
        self.drawn = self.np_random.integers(3)
        return s_t, reward, *rest


def test_random_play_of_a_trial_knows_nothing_of_the_environment_s_draws(
    register: Register, make_config: MakeConfig
) -> None:
    """Both had a generator of seed 0: each guess was right, and random play had the best score."""
    config = make_config(register(Guess))
    scores = try_game(config, describe_env(config), seconds=0.5).scores
    assert len(scores) > 100 and np.mean(scores) < 1.5


class Unseen(Short):
    """Sees nothing, which Gymnasium refuses of registered environments alone."""

    observation_space = Dict({})


def test_an_environment_that_sees_nothing_is_a_mistake(make_config: MakeConfig) -> None:
    with pytest.raises(EnvError, match=r"hold no number \(they are a Dict\(\)\)"):
        fitted(Unseen(), make_config("own.py:Unseen"))


class Old(Short):
    """Its step says with one flag that the episode is over, as Gym's did."""

    def step(self, action: Any) -> Any:
        seen, reward, terminated, _, info = super().step(action)
        return seen, reward, terminated, info


class Rewarding(Short):
    """Its reward is an array."""

    def step(self, action: Any) -> Any:
        return super().step(action)[0], np.ones(1), False, False, {}


class Bare(Short):
    """Its reset returns no info."""

    def reset(self, **given: Any) -> Any:
        return super().reset(**given)[0]


class Mute(Short):
    """Its step returns nothing."""

    def step(self, action: Any) -> Any:
        super().step(action)


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Old, "fault: its step must return .*terminated, truncated and info .*expected 5, got 4"),
        (Rewarding, r"fault: its step must return observation, reward \(one number\)"),
        (Mute, "its step must return .*NoneType|Expects step result to be a tuple"),
        (Bare, "fault: its reset must return observation and info"),
    ],
)
def test_what_is_returned_otherwise_is_named(
    kind: type[Short], sentence: str, checks: bool, register: Register, make_config: MakeConfig
) -> None:
    """With Gymnasium's checker, which is on for a registered environment, and without it."""
    name = register(kind)
    gymnasium.registry[name].disable_env_checker = not checks
    env = make_env(make_config(name), [0])
    with pytest.raises(EnvFailure, match=sentence):
        env.reset()
        env.step(np.zeros(1, np.int64))
