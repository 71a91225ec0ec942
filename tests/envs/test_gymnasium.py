"""Which Gymnasium environments are taken, and how."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Space, Text, Tuple
from gymnasium.spaces.utils import flatten

from envs.config import EnvConfig, EnvError, EnvFailure
from envs.legal import drawn_action, legal_actions
from envs.registry import describe_env, make_env

MakeConfig = Callable[..., EnvConfig]
Log = pytest.LogCaptureFixture
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


def _together(*spaces: Space[Any]) -> Tuple[Any]:
    return Tuple(spaces)


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
        (Sequence(NUMBERS), Discrete(2), "The observations of test/Echo-v0 are a Sequence"),
        (Box(0, 1, (0,)), Discrete(2), r"of test/Echo-v0 hold no number \(their shape is \(0,\)\)"),
        (NUMBERS, Tuple([Discrete(2)]), "The actions of test/Echo-v0 are a Tuple"),
        (NUMBERS, MultiDiscrete([40, 40]), "have 1,600 combinations, .* at most 1,024"),
        (NUMBERS, Box(-np.inf, np.inf, (2,)), r"have no bounds .*TransformAction.*Box\(-1.0, 1.0, \(2,\)\)"),
        (NUMBERS, Box(-1e300, 1e300, (2,), np.float64), "have no bounds within float32"),
        (NUMBERS, Box(-3e38, 3e38, (2,), np.float32), "have no bounds within float32"),
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


@pytest.mark.parametrize(
    ("space", "changes", "shape", "dtype"),
    [
        (Dict(x=NUMBERS, n=Discrete(3)), {}, (5,), "float32"),
        (Tuple([NUMBERS, MultiBinary(2)]), {}, (4,), "float32"),
        (Discrete(4), {}, (4,), "float32"),
        (Text(5), {}, (5,), "float32"),
        (Dict(x=NUMBERS, t=Text(4)), {}, (6,), "float32"),
        (_together(NUMBERS, Dict(t=Text(4))), {}, (6,), "float32"),
        (Box(-1, 1, (), np.float32), {}, (1,), "float32"),
        (Box(-1, 1, (2, 5), np.float32), {}, (10,), "float32"),
        (Box(0, 9, (2, 3, 4, 5), np.int64), {}, (120,), "float32"),
        (Box(0, 255, (3, 20, 30), np.uint8), {}, (20, 30, 3), "uint8"),
        (PIXELS, {"resize": 84}, (84, 84, 3), "uint8"),
        (PIXELS, {"grey": True}, (6, 5), "uint8"),
        (Box(0, 255, (3, 20, 30), np.uint8), {"grey": True, "resize": 42}, (42, 42), "uint8"),
    ],
)
def test_observations_become_a_vector_or_an_image(
    space: Space[Any],
    changes: dict[str, Any],
    shape: tuple[int, ...],
    dtype: str,
    register: Callable[..., str],
    make_config: MakeConfig,
) -> None:
    config = make_config(register(space, Discrete(2)), **changes)
    described = describe_env(config)
    assert (described.frame_shape, described.frame_dtype) == (shape, dtype)
    env = make_env(config, [1, 2])
    for frames in (env.reset()[0], env.step(np.array([0, 1]))[0]):
        assert frames.shape == (2, *shape)
        assert frames.dtype == dtype


def test_a_text_is_the_places_of_its_letters(register: Callable[..., str], make_config: MakeConfig) -> None:
    space = Text(4, min_length=2, charset="abc")
    frames, _ = make_env(make_config(register(space, Discrete(2))), [7]).reset()
    space.seed(7)
    letters, places = sorted("abc"), [space.character_list.index(each) for each in space.sample()]
    assert sorted(space.character_list) == letters
    assert frames[0].tolist() == [*places, *[3] * (4 - len(places))]


class Growing(Echo):
    """Its first observations are as promised."""

    def step(self, action: Any) -> Any:
        return np.zeros(4 if self.t else 2), *super().step(action)[1:]


def test_an_observation_of_another_shape_is_named_with_its_class(make_config: MakeConfig) -> None:
    gymnasium.register("test/Growing-v0", entry_point=partial(Growing, NUMBERS, Discrete(2)))
    try:
        env = make_env(make_config("test/Growing-v0"), [0, 1])
    finally:
        gymnasium.registry.pop("test/Growing-v0")
    env.reset()
    env.step([0, 0])
    said = r"is at fault: Growing returned an observation of the shape \(4,\), and its space has \(2,\)."
    with pytest.raises(EnvFailure, match=said):
        env.step([0, 0])


@pytest.mark.parametrize(
    ("space", "dtype"),
    [
        (Dict(look=PIXELS, n=Discrete(3)), "float32"),
        (Tuple([Dict(look=PIXELS), NUMBERS]), "float32"),
        (Dict(look=PIXELS, more=PIXELS), "uint8"),
    ],
)
def test_bytes_among_other_numbers_are_shares_of_255(
    space: Space[Any], dtype: str, register: Callable[..., str], make_config: MakeConfig
) -> None:
    """As networks see bytes that stand alone."""
    frames, _ = make_env(make_config(register(space, Discrete(2))), [7]).reset()
    space.seed(7)
    expected = np.asarray(flatten(space, space.sample()), np.float64)
    pixels = PIXELS.shape[0] * PIXELS.shape[1] * PIXELS.shape[2]
    if dtype == "float32":
        expected[:pixels] /= 255
    assert frames.dtype == dtype and np.allclose(frames[0], expected)


@pytest.mark.parametrize(
    ("space", "changes", "parts"),
    [
        (Dict(look=PIXELS, n=Discrete(3)), {}, ((6, 5, 3), (3,))),
        (Dict({"z": NUMBERS, "a": PIXELS}), {}, ((6, 5, 3), (2,))),
        (_together(NUMBERS, Dict(n=Discrete(3), view=PIXELS), PIXELS), {}, ((5,), (6, 5, 3), (6, 5, 3))),
        (Dict(look=PIXELS, more=PIXELS), {"grey": True}, ((6, 5), (6, 5))),
        (Dict(depth=Box(0, 255, (7, 5), np.uint8), look=PIXELS), {"grey": True}, ((7, 5), (6, 5))),
        (_together(Box(0, 255, (3, 20, 30), np.uint8), NUMBERS), {"resize": 8}, ((8, 8, 3), (2,))),
        (_together(Box(0, 255, (20, 30, 1), np.uint8), NUMBERS), {"resize": 8}, ((8, 8, 1), (2,))),
        (Dict(turn=Box(-1, 1, (3, 3)), n=Discrete(3)), {}, ()),
        (Dict(row=Box(0, 255, (2, 9), np.uint8), n=Discrete(3)), {}, ()),
        (PIXELS, {}, ()),
    ],
)
def test_pictures_among_other_parts_are_known(
    space: Space[Any],
    changes: dict[str, Any],
    parts: tuple[tuple[int, ...], ...],
    register: Callable[..., str],
    make_config: MakeConfig,
) -> None:
    config = make_config(register(space, Discrete(2)), **changes)
    described = describe_env(config)
    assert described.parts == parts
    frames, _ = make_env(config, [7]).reset()
    assert frames.shape == (1, *described.frame_shape)
    if parts:
        assert sum(map(math.prod, parts)) == frames.size


def test_a_picture_among_other_parts_is_what_it_is_alone(
    register: Callable[..., str], make_config: MakeConfig
) -> None:
    """In grey, of the size asked for, its channels last; as shares of 255 beside other numbers."""
    space = Box(0, 255, (3, 20, 30), np.uint8)
    for changes in ({}, {"resize": 8}, {"grey": True}, {"grey": True, "resize": 8}):
        together = _together(space, NUMBERS)
        frames, _ = make_env(make_config(register(together, Discrete(2)), **changes), [7]).reset()
        together.seed(7)
        picture, numbers = together.sample()
        gymnasium.registry.pop("test/Echo-v0")
        alone, _ = make_env(make_config(register(_Only(picture), Discrete(2)), **changes), [7]).reset()
        gymnasium.registry.pop("test/Echo-v0")
        np.testing.assert_allclose(frames[0, :-2], alone[0].ravel() / np.float32(255), rtol=1e-6)
        np.testing.assert_allclose(frames[0, -2:], numbers, rtol=1e-6)


class Rules(Echo):
    """May only be given action 2; `told` says where that is told, and a bad `end` forbids it at the end."""

    def __init__(self, seen: Space[Any] | None, told: str = "observation", end: bool = True) -> None:
        rest = {} if seen is None else {"rest": seen}
        parts = Dict({"action_mask": Box(0, 1, (3,), np.int8), **rest})
        super().__init__(parts if seen is None or told == "observation" else seen, Discrete(3))
        self._told, self._end = told, end

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self._with_rules(super().reset(seed=seed)[0])

    def step(self, action: Any) -> Any:
        assert action == 2, "illegal"
        seen, reward, terminated, truncated, _ = super().step(action)
        seen, info = self._with_rules(seen)
        return seen, reward, terminated, truncated, {} if terminated else info

    def _with_rules(self, seen: Any) -> Any:
        rules = {"action_mask": np.array([0, 0, self._end or self.t != 1], np.int8)}
        return (seen, rules) if self._told == "info" else ({**seen, **rules}, {})


class Stuck(Rules):
    """Nothing is ever legal."""

    def _with_rules(self, seen: Any) -> Any:
        return {**seen, "action_mask": np.zeros(3, np.int8)}, {}


OURS = {"interrupted": True, "life_lost": True, "room": "hall"}


class Talking(Echo):
    """Uses words of ours in its infos."""

    def reset(self, **given: Any) -> Any:
        return super().reset(**given)[0], OURS

    def step(self, action: Any) -> Any:
        return *super().step(action)[:4], OURS


@pytest.mark.parametrize(
    ("seen", "size", "parts"),
    [(NUMBERS, 2, ()), (Discrete(4), 4, ()), (PIXELS, 90, ((6, 5, 3), (3,))), (None, 0, ())],
)
def test_rules_in_a_dict_are_obeyed(
    seen: Space[Any] | None, size: int, parts: tuple[Any, ...], make_config: MakeConfig
) -> None:
    """They come last, whatever the names of the other parts."""
    gymnasium.register("test/Rules-v0", entry_point=partial(Rules, seen))
    try:
        config = make_config("test/Rules-v0")
        description, env = describe_env(config), make_env(config, [0, 1])
    finally:
        gymnasium.registry.pop("test/Rules-v0")
    assert description.masked and env.masked and description.parts == parts
    frames, _ = env.reset()
    assert frames.shape == (2, size + 3) and frames.dtype == np.float32
    for _ in range(5):
        actions = drawn_action(legal_actions(frames, 3), np.array([0.1, 0.9]))
        assert actions.tolist() == [2, 2]
        frames, *_ = env.step(actions)


@pytest.mark.parametrize(("seen", "size"), [(NUMBERS, 2), (Discrete(4), 4)])
def test_rules_in_infos_are_obeyed(
    seen: Space[Any], size: int, make_config: MakeConfig, caplog: pytest.LogCaptureFixture
) -> None:
    gymnasium.register("test/Info-v0", entry_point=partial(Rules, seen, told="info"))
    try:
        config = make_config("test/Info-v0", info_masks=True)
        description, env = describe_env(config), make_env(config, [0, 1])
        unheeding = make_env(make_config("test/Info-v0"), [0])
    finally:
        gymnasium.registry.pop("test/Info-v0")
    assert description.masked and description.frame_shape == (size + 3,)
    frames, _ = env.reset()
    for step in range(5):
        is_over = step == 3  # whose info says nothing
        assert legal_actions(frames, 3).tolist() == [[is_over, is_over, True]] * 2
        frames, *_ = env.step([2, 2])
    for _ in range(2):
        unheeding.reset()
    assert not unheeding.masked and [record.message for record in caplog.records] == [
        "test/Info-v0 says in its info which actions are legal: --info-masks True obeys that."
    ]


@pytest.mark.parametrize(
    ("mask", "actions"), [(4, Discrete(3)), (3, MultiDiscrete([3])), (3, Box(-1, 1, (3,)))]
)
def test_rules_that_do_not_fit_the_actions_are_said_not_to_be_obeyed(
    mask: int, actions: Space[Any], register: Callable[..., str], make_config: MakeConfig, caplog: Log
) -> None:
    env = make_env(make_config(register(Dict(action_mask=MultiBinary(mask), x=NUMBERS), actions)), [0, 1])
    for _ in range(2):
        env.reset()
    assert not env.masked and caplog.messages == [
        "test/Echo-v0 shows an action_mask that is not obeyed: it has no number for each of a Discrete's"
        " actions."
    ]


@pytest.mark.parametrize(
    ("game", "sentence"),
    [
        ("Pendulum-v1", "is of Discrete actions"),
        ("CartPole-v1", "needs an action_mask of 2 numbers in each info"),
    ],
)
def test_rules_that_are_not_told_are_one_sentence(game: str, sentence: str, make_config: MakeConfig) -> None:
    with pytest.raises(EnvError, match=sentence):
        make_env(make_config(game, info_masks=True), [0]).reset()


def test_taxi_is_played_by_its_rules(make_config: MakeConfig) -> None:
    """Gymnasium's own: a wall forbids a move, and whoever obeys never pays 10 for a wrong pick-up."""
    env = make_env(make_config("Taxi-v4", info_masks=True), [1, 2])
    frames, _ = env.reset()
    assert frames.shape == (2, 500 + 6) and env.masked
    generator = np.random.default_rng(0)
    for _ in range(100):
        frames, rewards, *_ = env.step(drawn_action(legal_actions(frames, 6), generator.random(2)))
        assert (rewards > -10).all()


def test_a_dead_end_is_refused(make_config: MakeConfig) -> None:
    kinds: dict[str, Any] = {
        "End": partial(Rules, NUMBERS, end=False),
        "Stuck": partial(Stuck, NUMBERS),
    }
    for name, kind in kinds.items():
        gymnasium.register(f"test/{name}-v0", entry_point=kind)
    try:
        ends, stuck = (make_env(make_config(f"test/{name}-v0"), [0]) for name in kinds)
    finally:
        for name in kinds:
            gymnasium.registry.pop(f"test/{name}-v0")
    ends.reset()
    with pytest.raises(EnvError, match="no action is legal, and the episode is not over"):
        ends.step([2])
    with pytest.raises(EnvError, match="no action is legal, and the episode is not over"):
        stuck.reset()


def test_words_of_ours_in_a_users_info_mean_nothing(make_config: MakeConfig) -> None:
    """An evaluation plays interrupted episodes again; after a lost life the score of a game goes on."""
    gymnasium.register("test/Talking-v0", entry_point=partial(Talking, NUMBERS, Discrete(2)))
    try:
        env = make_env(make_config("test/Talking-v0"), [0])
    finally:
        gymnasium.registry.pop("test/Talking-v0")
    for infos in (env.reset()[1], env.step([0])[4]):
        assert not OURS.keys() & infos.keys()


class _Only(Box):
    """A space of bytes in which one picture is drawn for ever."""

    def __init__(self, picture: np.ndarray[Any, Any]) -> None:
        super().__init__(0, 255, picture.shape, np.uint8)
        self._picture = picture

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        return self._picture


@pytest.mark.parametrize(
    "space",
    [
        Box(0, 255, (3, 20, 30), np.uint8),
        Box(0, 255, (12, 84, 84), np.uint8),
        Box(0, 1, (3, 20, 30), np.float32),
    ],
    ids=["bytes", "stacked", "floats"],
)
def test_the_channels_of_an_image_are_moved_not_mixed(
    space: Box, register: Callable[..., str], make_config: MakeConfig
) -> None:
    frames, _ = make_env(make_config(register(space, Discrete(2))), [7]).reset()
    space.seed(7)
    assert np.array_equal(frames[0], space.sample().transpose(1, 2, 0))


class Tells(Echo):
    """Keeps the actions that come to it."""

    taken: list[Any] = []

    def step(self, action: Any) -> Any:
        self.taken.append(action)
        return super().step(action)


@pytest.mark.parametrize(
    ("actions", "count"),
    [
        (MultiDiscrete([2, 3], start=[0, 5]), 6),
        (MultiDiscrete(np.array([[2, 2], [2, 1]])), 8),
        (MultiBinary(3), 8),
    ],
)
def test_several_discrete_actions_become_one_of_their_combinations(
    actions: Space[Any], count: int, make_config: MakeConfig
) -> None:
    gymnasium.register("test/Tells-v0", entry_point=partial(Tells, space=NUMBERS, actions=actions))
    config = make_config("test/Tells-v0")
    assert describe_env(config).num_actions == count
    env = make_env(config, [0])
    for action in range(count):
        env.reset()
        env.step(np.array([action]))
    taken, Tells.taken[:] = [*Tells.taken], []
    assert all(actions.contains(each) for each in taken)
    assert len({tuple(np.ravel(each)) for each in taken}) == count, "each combination has one number"
    gymnasium.registry.pop("test/Tells-v0")


def test_a_block_of_numbers_as_action_becomes_a_row(
    register: Callable[..., str], make_config: MakeConfig
) -> None:
    config = make_config(register(NUMBERS, Box(-1, 1, (2, 2))))
    assert describe_env(config).action_low == (-1.0,) * 4
    env = make_env(config, [0])
    env.reset()
    assert env.step(np.full((1, 4), 0.5))[1].tolist() == [2.0]


def test_arguments_go_to_the_constructor(make_config: MakeConfig) -> None:
    config = make_config("FrozenLake-v1", env_args='{"map_name": "8x8"}')
    assert describe_env(config).frame_shape == (64,)
    with pytest.raises(EnvError, match="no JSON"):
        describe_env(make_config("FrozenLake-v1", env_args="{size: 5}"))
    with pytest.raises(EnvError, match="must be a JSON object"):
        describe_env(make_config("FrozenLake-v1", env_args="5"))
    with pytest.raises(EnvError, match="of a registered id: --max-episode-steps does"):
        describe_env(make_config("FrozenLake-v1", env_args='{"max_episode_steps": 7}'))
    with pytest.raises(EnvError, match="could not be built: .*no_such"):
        describe_env(make_config("FrozenLake-v1", env_args='{"no_such": 5}'))


def test_what_is_no_image_of_bytes_is_not_resized(
    register: Callable[..., str], make_config: MakeConfig
) -> None:
    with pytest.raises(EnvError, match="--grey and --resize cannot be used with test/Echo-v0"):
        describe_env(make_config(register(NUMBERS, Discrete(2)), resize=84, grey=True))


def test_a_missing_package_is_named(make_config: MakeConfig) -> None:
    gymnasium.register("NeedsNoSuchPackage-v0", entry_point="no_such_package:Env")
    with pytest.raises(EnvError, match="could not be built"):
        describe_env(make_config("NeedsNoSuchPackage-v0"))


def test_an_extra_that_is_missing_is_named_with_the_command_that_gets_it(make_config: MakeConfig) -> None:
    """Gymnasium's own words would install other versions than those that are pinned."""

    def needy(**_: Any) -> gymnasium.Env[Any, Any]:
        raise gymnasium.error.DependencyNotInstalled('run `pip install "gymnasium[mujoco]"`')

    gymnasium.register("NeedsAnExtra-v0", entry_point=needy)
    with pytest.raises(EnvError, match=r"needs the extra mujoco: `EXTRAS=mujoco bash scripts/setup.sh`"):
        describe_env(make_config("NeedsAnExtra-v0"))


def test_lunar_lander_comes_with_the_extra_box2d(make_config: MakeConfig) -> None:
    pytest.importorskip("Box2D")
    description = describe_env(make_config("LunarLander-v3"))
    assert (description.frame_shape, description.num_actions) == ((8,), 4)
