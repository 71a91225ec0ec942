"""Games of several players: turns seen from the mover's side, seats side by side, rules that forbid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Space
from numpy.typing import NDArray

from envs.config import EnvConfig, EnvError
from envs.contract import SeededVectorEnv
from envs.legal import drawn_action, legal_actions
from envs.multi import described
from envs.multi.barrier import OtherSeatEnded, StepBarrier, play_seats
from envs.multi.seats import SeatsVector
from envs.multi.shared import SharedTables
from envs.multi.turns import TurnsVector
from envs.registry import describe_env, make_env, make_playback
from own_code.code import import_code
from tests.values.pebbles import HEAP, Pebbles, seen

BOARDS = ["pettingzoo:tictactoe_v3", "pettingzoo:connect_four_v3"]
Array = NDArray[Any]


@pytest.fixture(params=BOARDS)
def config(request: pytest.FixtureRequest, make_config: Callable[..., EnvConfig]) -> EnvConfig:
    return make_config(request.param)


def legal_moves(env: SeededVectorEnv, frames: Array, generator: np.random.Generator) -> Array:
    legal = legal_actions(frames, int(env.action_space.nvec[0]))  # type: ignore[attr-defined]
    return drawn_action(legal, generator.random(len(frames)))


def played(env: SeededVectorEnv, frames: Array, steps: int, seed: int = 0) -> list[tuple[Array, ...]]:
    generator, seen_steps = np.random.default_rng(seed), list[tuple[Array, ...]]()
    for _ in range(steps):
        step = env.step(legal_moves(env, frames, generator))[:4]
        frames = step[0]
        seen_steps.append(step)
    return seen_steps


def same(left: list[tuple[Array, ...]], right: list[tuple[Array, ...]]) -> bool:
    return all(
        np.array_equal(a, b) for x, y in zip(left, right, strict=True) for a, b in zip(x, y, strict=True)
    )


def test_frames_are_as_described_and_end_with_the_rules(config: EnvConfig) -> None:
    description = describe_env(config)
    env = make_env(config, [1, 2, 3])
    frames, _ = env.reset()
    assert env.masked and description.masked and description.by_turns
    assert frames.shape == (3, *description.frame_shape) and frames.dtype == description.frame_dtype
    assert description.num_actions is not None
    rules = frames[:, -9:] if frames.ndim == 2 else frames[:, 0, :, 2]
    assert rules.shape == (3, description.num_actions) and rules.all()


def test_who_moves_sees_own_pieces_first(make_config: Callable[..., EnvConfig]) -> None:
    """The first plane is the mover's, so the other player sees the new piece in the second."""
    env = make_env(make_config(BOARDS[0]), [0])
    env.reset()
    (frame,), *_ = env.step([4])
    own, others = frame[:18].reshape(9, 2).T
    assert not own.any() and others.tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert frame[18:].tolist() == [1, 1, 1, 1, 0, 1, 1, 1, 1]
    with pytest.raises(EnvError, match="forbid action 4"):
        env.step([4])


def test_a_board_is_an_image_with_the_rules_above_the_columns(make_config: Callable[..., EnvConfig]) -> None:
    env = make_env(make_config(BOARDS[1]), [0])
    frames, _ = env.reset()
    assert frames.shape == (1, 6, 7, 3) and frames.dtype == np.uint8
    for _ in range(6):
        (frame,), *_ = env.step([3])
    assert (frame[:, 3, :2].sum(1) == 255).all() and not frame[1:, :, 2].any()
    assert frame[0, :, 2].tolist() == [255, 255, 255, 0, 255, 255, 255]
    assert legal_actions(frame[None], 7)[0].tolist() == [True, True, True, False, True, True, True]


def test_a_win_pays_who_moved_and_the_next_step_begins_anew(make_config: Callable[..., EnvConfig]) -> None:
    env = make_env(make_config(BOARDS[0]), [0])
    first, _ = env.reset()
    steps = [env.step([move])[:4] for move in (0, 3, 1, 4, 2)]
    assert [step[1][0] for step in steps] == [0, 0, 0, 0, 1]
    assert [bool(step[2][0]) for step in steps] == [False] * 4 + [True]
    frames, rewards, terminated, truncated, _ = env.step([0])
    assert np.array_equal(frames, first) and not (rewards.any() or terminated.any() or truncated.any())


def test_a_truncation_is_none_of_the_rules(make_config: Callable[..., EnvConfig]) -> None:
    env = make_env(make_config(BOARDS[1], max_episode_steps=3), [0, 1])
    frames, _ = env.reset()
    steps = played(env, frames, 4)
    assert steps[2][3].all() and not steps[2][2].any() and not steps[3][3].any()


def test_a_saved_match_goes_on(config: EnvConfig) -> None:
    env, other = make_env(config, [1, 2]), make_env(config, [7, 8])
    frames = played(env, env.reset()[0], 30)[-1][0]
    other.reset()
    state = env.state_dict()
    assert state is not None
    other.load_state_dict(state)
    assert same(played(env, frames, 30, seed=3), played(other, frames, 30, seed=3))


def test_a_saved_match_that_was_cut_short_begins_anew(make_config: Callable[..., EnvConfig]) -> None:
    config = make_config(BOARDS[0], max_episode_steps=3)
    env, other = make_env(config, [1]), make_env(config, [7])
    first, _ = env.reset()
    assert played(env, first, 3)[-1][3].all()
    other.reset()
    state = env.state_dict()
    assert state is not None and state["duels"][0][1] is True
    other.load_state_dict(state)
    assert np.array_equal(other.step([0])[0], first)


def test_a_marked_row_restarts_alone(config: EnvConfig) -> None:
    env = make_env(config, [1, 2])
    first, _ = env.reset()
    before = played(env, first, 3)[-1][0]
    frames, _ = env.reset(seed=[5], options={"reset_mask": np.array([False, True])})
    assert np.array_equal(frames[0], before[0]) and np.array_equal(frames[1], first[1])


def test_a_film_shows_the_board(config: EnvConfig) -> None:
    playback = make_playback(config, 3)
    frame = playback.first()
    after, pictures = playback.step(0)
    assert not np.array_equal(frame, after)
    assert len(pictures) == 1 and pictures[0].ndim == 3 and len(np.unique(pictures[0])) > 1


def test_a_film_of_an_illegal_move_names_the_game(config: EnvConfig) -> None:
    playback = make_playback(config, 3)
    playback.first()
    with pytest.raises(EnvError, match=f"The rules of {config.game} forbid action 3 there"):
        for _ in range(7):  # a column of connect four holds six
            playback.step(3)


def test_a_user_s_own_game(make_config: Callable[..., EnvConfig]) -> None:
    """Named by its file, as an environment is."""
    name = f"{Path(__file__).parents[1] / 'values' / 'pebbles.py'}:Pebbles"
    import_code(name)
    config = make_config("pebbles.py:Pebbles")
    assert describe_env(config).frame_shape == seen(HEAP).shape
    env = make_env(config, [0])
    assert np.array_equal(env.reset()[0][0], seen(HEAP))
    (frame,), rewards, *_ = env.step([1])
    assert np.array_equal(frame, seen(HEAP - 2)) and rewards[0] == 0


class RulesInInfos(Pebbles):
    """Observes an array, and says in its infos what is legal."""

    def observation_space(self, seat: str) -> Box:  # type: ignore[override]
        return Box(0, 1, (HEAP + 1,), np.int8)

    def observe(self, seat: str) -> Array:  # type: ignore[override]
        return np.asarray(super().observe(seat)["observation"])

    @property
    def infos(self) -> dict[str, dict[str, Array]]:
        return {seat: {"action_mask": seen(self._left)[HEAP + 1 :]} for seat in self.possible_agents}


def test_rules_in_infos_are_obeyed_by_turns(make_config: Callable[..., EnvConfig]) -> None:
    env = TurnsVector(make_config("pebbles"), [0], lambda config, mode=None: RulesInInfos())
    frames, _ = env.reset()
    for pebbles in (HEAP, 3, 2, 1):
        assert np.array_equal(frames[0], seen(pebbles))
        frames, *_ = env.step([0])


class StopsAtTheMover(Pebbles):
    """Truncates itself after two moves without passing the turn on, and shows each seat another number."""

    def observe(self, seat: str) -> dict[str, Any]:
        own = super().observe(seat)
        return {**own, "observation": np.full(HEAP + 1, seat == "second")}

    def step(self, action: int) -> None:
        mover = self.agent_selection
        super().step(action)
        if self._left == HEAP - 2:
            self.truncations, self.agent_selection = dict.fromkeys(self.possible_agents, True), mover


def test_a_game_that_stops_is_seen_by_the_other_player(make_config: Callable[..., EnvConfig]) -> None:
    """What is to come counts against whoever moved last."""
    env = TurnsVector(make_config("pebbles"), [0], lambda config, mode=None: StopsAtTheMover())
    env.reset()
    steps = [env.step([0]) for _ in range(2)]
    assert [step[0][0, 0] for step in steps] == [1, 0] and steps[1][3].all() and not steps[1][2].any()


class DiesEarly(Pebbles):
    """One seat is out, the other plays on."""

    def step(self, action: int) -> None:
        super().step(action)
        self.terminations["first"] = True


class Stuck(Pebbles):
    """Nothing is legal after one move."""

    def observe(self, seat: str) -> dict[str, Any]:
        own = super().observe(seat)
        return {**own, "action_mask": own["action_mask"] * (self._left == HEAP)}


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [(DiesEarly, "one player is out before the other"), (Stuck, "no action is legal, and the game is not")],
)
def test_other_games_by_turns_are_refused(
    kind: type[Pebbles], sentence: str, make_config: Callable[..., EnvConfig]
) -> None:
    env = TurnsVector(make_config("pebbles"), [0], lambda config, mode=None: kind())
    env.reset()
    with pytest.raises(EnvError, match=sentence):
        env.step([0])


def test_a_game_that_is_no_duel_is_refused(make_config: Callable[..., EnvConfig]) -> None:
    env = TurnsVector(make_config("pebbles"), [0], lambda config, mode=None: Pebbles(gain_of_loser=0.5))
    env.reset()
    env.step([1])
    with pytest.raises(EnvError, match="gain is not the other's loss"):
        env.step([1])


def test_seats_of_a_game_of_moves_at_the_same_time(make_config: Callable[..., EnvConfig]) -> None:
    """Two tables of Pong: what one seat gains the other loses, and the last plane says which it is."""
    config = make_config("pettingzoo:pong_v3", resize=42, grey=True)
    description = describe_env(config)
    env = make_env(config, [1, 2, 3, 4])
    frames, _ = env.reset()
    assert frames.shape == (4, 42, 42, 2) == (4, *description.frame_shape)
    assert (frames[::2, ..., 1] == 0).all() and (frames[1::2, ..., 1] == 255).all()
    total = np.zeros(4)
    for step in played_at_random(env, 300):
        total += step[1]
        assert not (step[2] | step[3]).any()
    assert np.array_equal(total[::2], -total[1::2]) and total.any()
    with pytest.raises(EnvError, match="has 2 seats: 3 environments"):
        make_env(config, [1, 2, 3])


class Side:
    """Two seats for `length` steps, each with one point a step; its first seat may take action 1 alone."""

    possible_agents = ("left", "right")
    length = 5

    def __init__(
        self, seen: Box, rules: str = "", without: str = "", allowed: tuple[int, ...] = (0, 1, 0)
    ) -> None:
        """`rules`: where they are said, "observation" or "infos"; `without`: who comes later."""
        self._box, self._rules, self._without, self._allowed = (
            seen,
            rules,
            without,
            np.array(allowed, np.int8),
        )

    def observation_space(self, seat: str) -> Box | Dict:
        mask = Box(0, 1, (3,), np.int8)
        return (
            Dict({"observation": self._box, "action_mask": mask})
            if self._rules == "observation"
            else self._box
        )

    def action_space(self, seat: str) -> Discrete:
        return Discrete(3)

    def reset(self, seed: int | None = None, options: object = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.agents, self._taken = [each for each in self.possible_agents if each != self._without], 0
        return self._seen(), {
            seat: self._said(seat) if self._rules == "infos" else {} for seat in self.agents
        }

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        self._taken += 1
        seats, is_over = self.agents, self._taken == self.length
        seen, points = self._seen(), dict.fromkeys(seats, 1.0)
        self.agents = [] if is_over else seats
        return seen, points, dict.fromkeys(seats, is_over), dict.fromkeys(seats, False), {}

    def close(self) -> None:
        """Nothing to end."""

    def _seen(self) -> dict[str, Any]:
        own = {"observation": self._box.high}
        return {
            seat: {**own, **self._said(seat)} if self._rules == "observation" else self._box.high
            for seat in self.agents
        }

    def _said(self, seat: str) -> dict[str, Array]:
        return {"action_mask": self._allowed if seat == "left" else np.ones(3, np.int8)}


ONE = Box(0, 1, (1,), np.float32)


def test_an_action_is_repeated_in_atari_s_games_alone(make_config: Callable[..., EnvConfig]) -> None:
    config = make_config("side")
    assert config.action_repeat == 4 and described(Side(ONE), config).frames_per_step == 1
    env = SeatsVector(config, [0, 0], lambda config, mode=None: Side(ONE))
    env.reset()
    steps = [env.step([1, 1]) for _ in range(5)]
    assert all((step[1] == 1).all() for step in steps)
    assert [bool(step[2].all()) for step in steps] == [False] * 4 + [True]
    assert describe_env(make_config("pettingzoo:pong_v3")).frames_per_step == 4


@pytest.mark.parametrize("stickiness", [0.0, 0.5])
def test_actions_of_atari_s_seats_are_sticky(
    stickiness: float, make_config: Callable[..., EnvConfig]
) -> None:
    """Nothing else in them is random. From one seed they repeat."""
    config = make_config("pettingzoo:pong_v3", resize=42, grey=True, proba_sticky_actions=stickiness)

    def last_frame(seed: int) -> Array:
        env, moves = make_env(config, [seed, seed]), np.random.default_rng(1)
        env.reset()
        frames = [env.step(moves.integers(6, size=2))[0] for _ in range(60)]
        return frames[-1]

    one, again, other = (last_frame(seed) for seed in (1, 1, 2))
    assert np.array_equal(one, again) and np.array_equal(one, other) == (stickiness == 0)


@pytest.mark.parametrize(
    ("box", "frame"),
    [
        (Box(0, 255, (2,), np.uint8), [1, 1, 1, 0]),
        (Box(0, 1, (2,), np.uint8), [1, 1, 1, 0]),
        (Box(-3, 7, (2,), np.float32), [7, 7, 1, 0]),
    ],
)
def test_bytes_that_are_no_picture_are_shares(
    box: Box, frame: list[float], make_config: Callable[..., EnvConfig]
) -> None:
    env = SeatsVector(make_config("side"), [0, 0], lambda config, mode=None: Side(box))
    frames, _ = env.reset()
    assert frames[0].tolist() == frame and env.observation_space.contains(frames)


class Shown(Pebbles):
    """Pebbles that are seen otherwise: always `seen` of the space `shown`."""

    def __init__(self, shown: Space[Any], seen: Any) -> None:
        super().__init__()
        self._shown, self._seen = shown, seen

    def observation_space(self, seat: str) -> Dict:
        return Dict({**super().observation_space(seat).spaces, "observation": self._shown})

    def observe(self, seat: str) -> dict[str, Any]:
        return {**super().observe(seat), "observation": self._seen}


BYTES, PICTURE = Box(0, 255, (2,), np.uint8), Box(0, 255, (5, 6, 3), np.uint8)


@pytest.mark.parametrize(
    ("shown", "seen", "frame"),
    [
        (BYTES, BYTES.high, [1, 1, 1, 1]),
        (Box(-3, 7, (2,), np.float32), np.array([7, -3]), [7, -3, 1, 1]),
        (Discrete(3), 2, [0, 0, 1, 1, 1]),
        (MultiBinary(2), np.array([1, 0], np.int8), [1, 0, 1, 1]),
    ],
)
def test_what_is_shown_by_turns_becomes_numbers(
    shown: Space[Any], seen: Any, frame: list[float], make_config: Callable[..., EnvConfig]
) -> None:
    env = TurnsVector(make_config("pebbles"), [0], lambda config, mode=None: Shown(shown, seen))
    frames, _ = env.reset()
    assert frames[0].tolist() == frame and env.observation_space.contains(frames)


def test_a_picture_by_turns_stays_one(make_config: Callable[..., EnvConfig]) -> None:
    """With the rules as its last plane; in grey and smaller too."""
    picture = np.arange(90, dtype=np.uint8).reshape(5, 6, 3)

    def built(**changes: object) -> Array:
        env = TurnsVector(
            make_config("pebbles", **changes), [0], lambda config, mode=None: Shown(PICTURE, picture)
        )
        return env.reset()[0]

    frames = built()
    assert np.array_equal(frames[0, ..., :3], picture)
    assert frames[0, ..., 3].ravel().tolist() == [255, 255] + [0] * 28
    assert legal_actions(frames, 2).all()
    assert built(resize=4, grey=True).shape == (1, 4, 4, 2)
    with pytest.raises(EnvError, match="have fewer pixels than actions: give a larger --resize"):
        built(resize=1)


def test_channels_of_a_seat_s_picture_are_moved(make_config: Callable[..., EnvConfig]) -> None:
    """And the last plane still says which seat it is; in grey and smaller too."""
    high = np.full((3, 40, 30), 9, np.uint8)
    high[1] = 70
    box = Box(np.zeros_like(high), high, dtype=np.uint8)
    env = SeatsVector(make_config("side"), [0, 0], lambda config, mode=None: Side(box))
    frames, _ = env.reset()
    assert frames.shape == (2, 40, 30, 4) and (frames[1] == [9, 70, 9, 255]).all()
    small = SeatsVector(
        make_config("side", resize=20, grey=True), [0, 0], lambda config, mode=None: Side(box)
    )
    assert small.reset()[0].shape == (2, 20, 20, 2)


@pytest.mark.parametrize("shape", [(6, 6, 2), (6, 6)])
def test_ones_of_a_seat_s_board_are_bright(
    shape: tuple[int, ...], make_config: Callable[..., EnvConfig]
) -> None:
    """Networks divide bytes by 255."""
    box = Box(0, 1, shape, np.uint8)
    env = SeatsVector(make_config("side"), [0, 0], lambda config, mode=None: Side(box))
    frames, _ = env.reset()
    assert env.observation_space.contains(frames) and (frames[0, ..., :-1] == 255).all()


@pytest.mark.parametrize("box", [ONE, Box(0, 255, (6, 5, 3), np.uint8)])
def test_rules_of_seats_are_obeyed(box: Box, make_config: Callable[..., EnvConfig]) -> None:
    config = make_config("side")
    description = described(Side(box, "observation"), config)
    env = SeatsVector(config, [0, 0], lambda config, mode=None: Side(box, "observation"))
    frames, _ = env.reset()
    assert env.masked and description.masked and frames.shape[1:] == description.frame_shape
    assert legal_actions(frames, 3).tolist() == [[False, True, False], [True] * 3]
    assert env.observation_space.contains(frames)
    whole = SharedTables.__new__(SharedTables)
    whole.tables, whole.config, whole.seats, whole.actions = env, config, 2, np.zeros((1, 2), np.int64)
    assert whole.seat(0).masked


@pytest.mark.parametrize(
    ("game", "sentence"),
    [
        (Side(ONE, "infos"), "says in its infos which actions are legal"),
        (Side(ONE, without="right"), "begins without its seat right"),
        (Side(ONE, "observation", allowed=(0, 0, 0)), "seat left has no legal action"),
    ],
)
def test_other_games_of_seats_are_refused(
    game: Side, sentence: str, make_config: Callable[..., EnvConfig]
) -> None:
    env = SeatsVector(make_config("side"), [0, 0], lambda config, mode=None: game)
    with pytest.raises(EnvError, match=sentence):
        env.reset()


def played_at_random(env: SeededVectorEnv, steps: int) -> list[tuple[Array, ...]]:
    generator = np.random.default_rng(0)
    return [env.step(generator.integers(6, size=env.num_envs))[:4] for _ in range(steps)]


def test_tables_repeat_by_their_seed_and_end_together(make_config: Callable[..., EnvConfig]) -> None:
    config = make_config("pettingzoo:pong_v3", resize=42, grey=True, max_episode_steps=20)
    runs = []
    for _ in range(2):
        env = make_env(config, [5, 6])
        env.reset()
        runs.append(played_at_random(env, 45))
    assert same(*runs)
    ended = [step[3].tolist() for step in runs[0]]
    assert ended[19] == ended[40] == [True, True] and sum(map(any, ended)) == 2


@pytest.mark.parametrize(
    ("game", "sentence"),
    [
        ("pettingzoo:nothing_v1", "has no game nothing_v1"),
        ("pettingzoo:tictactoe", "has no game tictactoe: did you mean pettingzoo:tictactoe_v3"),
        ("pettingzoo:texas_holdem_v4", r"needs more packages .*`pip install 'pettingzoo\[classic\]'`"),
    ],
)
def test_a_mistake_is_one_sentence(game: str, sentence: str, make_config: Callable[..., EnvConfig]) -> None:
    with pytest.raises(EnvError, match=sentence):
        describe_env(make_config(game))


def test_drawn_actions_are_legal_and_uniform() -> None:
    frames = np.array([[7.0, 0, 1, 0, 1], [7.0, 0, 0, 0, 0]], np.float32)
    legal = legal_actions(frames, 4)
    assert legal.tolist() == [[False, True, False, True], [True] * 4], "all where nothing is: a game is over"
    draws = np.linspace(0, 1, 100, endpoint=False)
    assert np.bincount(drawn_action(np.repeat(legal[:1], 100, 0), draws)).tolist() == [0, 50, 0, 50]
    assert np.bincount(drawn_action(np.repeat(legal[1:], 100, 0), draws)).tolist() == [25] * 4


def test_seats_in_threads_play_as_the_tables_do(make_config: Callable[..., EnvConfig]) -> None:
    """Each sees its rows; one that ends ends all."""
    config = make_config("pettingzoo:pong_v3", resize=42, grey=True, max_episode_steps=10)
    whole = make_env(config, [5, 5, 6, 6])
    begun, _ = whole.reset()
    actions = np.random.default_rng(1).integers(6, size=(25, 2, 2))  # steps, tables, seats
    expected: list[tuple[Array, ...]] = [whole.step(each.ravel())[:4] for each in actions]
    shared, told = SharedTables(config, 2, [5, 6]), list[str]()
    seen = dict[int, list[tuple[Array, ...]]]()

    def play(seat: int, env: SeededVectorEnv) -> None:
        frames, _ = env.reset()
        assert np.array_equal(frames, begun[seat::2])
        seen[seat] = [env.step(each[:, seat])[:4] for each in actions]
        if seat == 1:
            try:
                env.step([0, 0])
            except OtherSeatEnded as closed:
                told.append(str(closed))

    play_seats(shared, play)
    for seat in (0, 1):
        assert same(seen[seat], [tuple(part[seat::2] for part in step) for step in expected])
    assert told == ["Another seat of pettingzoo:pong_v3 has ended."]


def test_a_step_that_was_taken_is_told_also_after_the_end() -> None:
    """To a seat that wakes up after the others have ended; the next step is nobody's."""
    barrier = StepBarrier(1, lambda: None, "pong")
    barrier.wait(0, 1)
    barrier.close()
    barrier.wait(0, 1)
    with pytest.raises(OtherSeatEnded):
        barrier.wait(0, 2)


def test_an_error_of_one_seat_ends_all_and_is_raised(make_config: Callable[..., EnvConfig]) -> None:
    shared = SharedTables(make_config("pettingzoo:pong_v3", resize=42, grey=True), 2, [5])

    def play(seat: int, env: SeededVectorEnv) -> None:
        env.reset()
        if seat == 0:
            raise ZeroDivisionError("a bug")
        with pytest.raises(OtherSeatEnded):
            env.step([0])

    with pytest.raises(ZeroDivisionError, match="a bug"):
        play_seats(shared, play)


def test_seats_are_for_games_that_have_them(make_config: Callable[..., EnvConfig]) -> None:
    for config, seats in ((make_config(BOARDS[0]), 2), (make_config("pettingzoo:pong_v3"), 3)):
        with pytest.raises(EnvError, match="seats|tables"):
            SharedTables(config, seats, [1])
