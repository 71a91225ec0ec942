"""Which Gymnasium environments are taken, and how."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Space, Tuple

from envs.config import EnvConfig, EnvError
from envs.registry import describe_env, make_env

MakeConfig = Callable[..., EnvConfig]
PIXELS = Box(0, 255, (6, 5, 3), np.uint8)
NUMBERS = Box(-np.inf, np.inf, (2,), np.float64)


class Echo(gymnasium.Env[Any, Any]):
    """Rewards with the action it was given; observes anything of its space; lasts three steps."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, space: Space[Any], actions: Space[Any], render_mode: str | None = None) -> None:
        self.observation_space, self.action_space, self.render_mode = space, actions, render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.observation_space.sample(), float(np.sum(action)), self.t == 3, False, {}


@pytest.fixture
def register() -> Iterator[Callable[..., str]]:
    def add(space: Space[Any], actions: Space[Any]) -> str:
        gymnasium.register("test/Echo-v0", entry_point=partial(Echo, space=space, actions=actions))
        return "test/Echo-v0"

    yield add
    gymnasium.registry.pop("test/Echo-v0", None)


def test_pixels_stay_uint8(register: Callable[..., str], make_config: MakeConfig) -> None:
    config = make_config(register(PIXELS, Discrete(2)))
    assert describe_env(config).frame_shape == (6, 5, 3)
    assert describe_env(config).history_length == 4
    frames, _ = make_env(config, [0, 1]).reset()
    assert frames.shape == (2, 6, 5, 3)
    assert frames.dtype == np.uint8


def test_other_numbers_become_float32(register: Callable[..., str], make_config: MakeConfig) -> None:
    config = make_config(register(NUMBERS, Discrete(2)))
    assert describe_env(config).frame_dtype == "float32"
    assert make_env(config, [0]).reset()[0].dtype == np.float32


def test_actions_that_do_not_start_at_zero(register: Callable[..., str], make_config: MakeConfig) -> None:
    env = make_env(make_config(register(NUMBERS, Discrete(3, start=5))), [0, 0, 0])
    env.reset()
    assert env.step(np.array([0, 1, 2]))[1].tolist() == [5.0, 6.0, 7.0]


@pytest.mark.parametrize(
    ("space", "actions", "sentence"),
    [
        (Dict(x=NUMBERS), Discrete(2), "The observations of test/Echo-v0 are a Dict"),
        (Tuple([NUMBERS]), Discrete(2), "The observations of test/Echo-v0 are a Tuple"),
        (Discrete(4), Discrete(2), "The observations of test/Echo-v0 are a Discrete"),
        (NUMBERS, MultiDiscrete([2, 2]), "The actions of test/Echo-v0 are a MultiDiscrete"),
        (NUMBERS, Box(-np.inf, np.inf, (2,)), "bounded numbers"),
        (NUMBERS, Box(-1, 1, (2, 2)), "one row"),
    ],
)
def test_other_spaces_are_refused(
    space: Space[Any],
    actions: Space[Any],
    sentence: str,
    register: Callable[..., str],
    make_config: MakeConfig,
) -> None:
    config = make_config(register(space, actions))
    with pytest.raises(EnvError, match=sentence):
        describe_env(config)
    with pytest.raises(EnvError, match=sentence):
        make_env(config, [0])


def test_a_missing_package_is_named(make_config: MakeConfig) -> None:
    gymnasium.register("NeedsNoSuchPackage-v0", entry_point="no_such_package:Env")
    with pytest.raises(EnvError, match="could not be built"):
        describe_env(make_config("NeedsNoSuchPackage-v0"))
