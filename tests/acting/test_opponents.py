"""Past selves at one seat: which are drawn, whose moves are theirs, how results are counted."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from safetensors.torch import load_file

from acting.opponents import (
    NOBODY,
    Members,
    OpponentsConfig,
    SeatsPoolPlayer,
    TurnsPoolPlayer,
    f_hard,
    uniform,
)
from agents.base import Acting, ActingNoise, Agent, AgentError, Problem
from agents.random_agent import RandomAgent, RandomConfig
from args import Args, UserError, read_args
from envs.config import EnvConfig, EnvError
from envs.legal import legal_actions
from envs.multi.seats import SeatsVector
from envs.multi.turns import TurnsVector
from evaluation.matches.play import play_matches
from evaluation.policies import EpsilonPolicy
from launch_learner import run_learner
from learning.pool import thinned
from learning.saved.snapshot import SnapshotError, load_snapshot
from memory.runs.keys import Keys
from memory.runs.pool import read_member, read_members
from memory.server.connection import Client
from reporting.model_files import last_models
from supervision.process import Stop
from tests.processes import run as run_program
from wiring.checks import check_agent_fits
from wiring.code import canonical
from wiring.evaluating.candidates import Opponent, baseline_candidate, opponents_of, snapshot_candidate
from wiring.setting import setting_of

GAME = "pettingzoo:tictactoe_v3"
CONFIG = EnvConfig(GAME, 1, 0.0, False, 300.0, False)
NUMBERS, ACTIONS = 27, 9


class First(RandomAgent):
    """Plays the first legal move, or the last."""

    def __init__(self, last: bool) -> None:
        problem = Problem((1, NUMBERS), "float32", ACTIONS, None, None, masked=True)
        super().__init__(problem, RandomConfig(), torch.device("cpu"), 0, learning=False)
        self._last = last

    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        legal = legal_actions(s_t[:, -1], ACTIONS)
        a_t = ACTIONS - 1 - legal[:, ::-1].argmax(1) if self._last else legal.argmax(1)
        known = np.zeros((len(s_t), 1), np.float32)
        return Acting(a_t, known.copy(), known)


class OnePast(Members):
    """A pool of one member, number 7, which plays last moves."""

    def __init__(self) -> None:
        self.present = True

    def known(self) -> list[int]:
        return [7]

    def agent(self, updates: int) -> Agent | None:
        assert updates == 7
        return First(last=True) if self.present else None

    def forget(self, kept: Any) -> None:
        assert kept == [7]


def player_of(share: float, rows: int = 4) -> TurnsPoolPlayer:
    env = TurnsVector(CONFIG, list(range(rows)))
    return TurnsPoolPlayer(First(last=False), env, OpponentsConfig("past", share, 1), 3, OnePast())


def moves_of(player: TurnsPoolPlayer, steps: int) -> list[tuple[Any, ...]]:
    """Opponents, whether they move, and the step."""
    seen = []
    for _ in range(steps):
        opponents, theirs = player._opponent.copy(), player._plies % 2 == player._seat
        seen.append((opponents, theirs & (opponents != NOBODY), player.step(at_random=False)))
    return seen


def test_a_past_self_plays_one_seat_of_the_games_that_it_was_drawn_for() -> None:
    """Never in a row's first game, which begins before anybody asks; from both seats later."""
    seen = moves_of(player_of(1.0), 60)
    assert (seen[0][0] == NOBODY).all() and (seen[-1][0] == 7).all()
    first_movers = set()
    for opponents, theirs, step in seen:
        legal = legal_actions(step.frames, ACTIONS)
        last = ACTIONS - 1 - legal[:, ::-1].argmax(1)
        assert (step.a_t == np.where(theirs, last, legal.argmax(1)))[step.active].all()
        assert (np.isnan(step.acting.chosen[:, 0]) == theirs).all()
        beginning = step.frames[:, :18].sum(1) == 0
        first_movers |= set(theirs[beginning & step.active & (opponents == 7)].tolist())
    assert first_movers == {True, False}


def test_without_a_share_nobody_else_plays() -> None:
    assert all((opponents == NOBODY).all() for opponents, *_ in moves_of(player_of(0.0), 30))


def test_a_member_that_has_gone_is_replaced_by_the_present_self() -> None:
    player = player_of(1.0)
    player._members.present = False  # type: ignore[attr-defined]
    for _, _, step in moves_of(player, 30):
        assert (step.a_t == legal_actions(step.frames, ACTIONS).argmax(1))[step.active].all()


def test_results_count_for_the_right_side() -> None:
    """First against last legal moves: 0, 8, 1, 7, 2 is won by who plays the first ones, from either seat."""
    player = player_of(1.0)
    wins, games = 0, 0
    for opponents, theirs, step in moves_of(player, 80):
        ended = step.terminated & step.active & (opponents == 7)
        games += int(ended.sum())
        wins += int((ended & ~theirs & (step.rewards > 0)).sum())
        assert not (ended & (step.rewards == 0)).any()
    assert player._games == {7: [games, wins]} and games > 20 and wins > 0


def test_its_state_goes_on() -> None:
    one, other = player_of(0.5), player_of(0.5)
    moves_of(one, 23)
    state = one.state_dict()
    assert state is not None
    other.load_state_dict(state)
    left, right = moves_of(one, 40), moves_of(other, 40)
    assert all(
        np.array_equal(a[0], b[0]) and np.array_equal(a[2].a_t, b[2].a_t)
        for a, b in zip(left, right, strict=True)
    )
    assert one._games == other._games


class Bids:
    """Two seats that bid at the same time, three times, and gain what they bid."""

    possible_agents = ("left", "right")

    def observation_space(self, seat: str) -> Box:
        return Box(0, 3, (1,), np.float32)

    def action_space(self, seat: str) -> Discrete:
        return Discrete(3)

    def reset(self, seed: int | None = None, options: object = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.agents, self._bids = [*self.possible_agents], 0
        return self._of_each(np.zeros(1)), self._of_each({})

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        self._bids += 1
        is_over = self._bids == 3
        self.agents = [] if is_over else self.agents
        seen, infos = self._of_each(np.full(1, self._bids)), self._of_each({})
        return seen, dict(actions), self._of_each(is_over), self._of_each(False), infos

    def _of_each(self, thing: Any) -> dict[str, Any]:
        return dict.fromkeys(self.possible_agents, thing)

    def close(self) -> None:
        """Nothing to end."""


class Always(RandomAgent):
    """Bids the same."""

    def __init__(self, bid: int) -> None:
        problem = Problem((1, 3), "float32", 3, None, None)
        super().__init__(problem, RandomConfig(), torch.device("cpu"), 0, learning=False)
        self._bid = bid

    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        known = np.zeros((len(s_t), 1), np.float32)
        return Acting(np.full(len(s_t), self._bid), known.copy(), known)


class OneBidder(OnePast):
    """A pool of one member, number 7, which bids 2."""

    def agent(self, updates: int) -> Agent | None:
        return Always(2)


@pytest.mark.parametrize(("share", "bid", "points"), [(1.0, 0, 0.0), (1.0, 2, 0.5), (0.0, 0, None)])
def test_a_past_self_plays_a_seat_of_moves_at_the_same_time(
    share: float, bid: int, points: float | None
) -> None:
    """Either seat, never in a first game; a result is that of the game's two seats."""
    env = SeatsVector(replace(CONFIG, game="bids"), [0] * 8, lambda config, mode=None: Bids())
    player = SeatsPoolPlayer(Always(bid), env, OpponentsConfig("past", share, 1), 3, OneBidder())
    theirs = []
    for _ in range(40):
        whose = player._whose()
        step = player.step(at_random=False)
        assert (step.a_t == np.where(whose == 7, 2, bid))[step.active].all()
        assert isinstance(step.acting, Acting)
        assert (np.isnan(step.acting.chosen[:, 0]) == (whose == 7)).all()
        theirs.append((whose == 7).reshape(-1, 2))
    assert not theirs[0].any()
    if points is None:
        assert not any(each.any() for each in theirs) and not player._games
    else:
        assert (theirs[-1].sum(axis=1) == 1).all() and np.any(theirs, axis=(0, 1)).all()
        games, sum_of_points = player._games[7]
        assert games == 9 * 4 and sum_of_points == points * games


def test_who_is_hard_to_beat_is_drawn_more_often() -> None:
    games, points = np.array([10.0, 10.0, 0.0]), np.array([9.0, 1.0, 0.0])
    assert np.allclose(uniform(games, points), 1 / 3)
    chances = f_hard(games, points)
    assert np.allclose(
        chances, np.array([(1.5 / 11) ** 2, (9.5 / 11) ** 2, 0.25]) / ((1.5**2 + 9.5**2) / 121 + 0.25)
    )
    assert chances[1] > chances[2] > chances[0]


def test_a_full_pool_thins_its_older_half() -> None:
    members: list[int] = []
    for each in range(100):
        members = thinned([*members, each], 10)
        assert len(members) <= 10 and members[-1] == each
    assert members == sorted(members) and members[0] == 0 and members[-5:] == [95, 96, 97, 98, 99]
    assert thinned([1, 2, 3], 2) == [1, 3]
    assert thinned(list(range(17)), 4) == [0, 8, 15, 16]


def words(folder: Path, socket: str, run: str, *more: object) -> Args:
    own = f"--serial --threads 1 --agent dqn --game {GAME} --discount -1 --envs-per-actor 2 --hidden-size 16"
    small = "--learn-start 200 --memory-capacity 2000 --chunk-length 8"
    pool = "--opponents pfsp --opponent-share 1 --pool-every 150 --pool-size 3"
    place = ["--host-redis", socket, "--run", run, "--path-to-results", str(folder / run)]
    return canonical(read_args([*own.split(), *small.split(), *pool.split(), *place, *map(str, more)]))


@pytest.mark.slow
def test_a_run_against_its_past_repeats_and_its_pool_outlives_redis(
    client: Client, redis_socket: str, tmp_path: Path
) -> None:
    old = [tmp_path / "one" / f"matches_pettingzoo_tictactoe_v3{each}.json" for each in ("", "_7", "_pool")]
    other = old[0].with_stem("matches_pettingzoo_tictactoe_v3_b")
    old[0].parent.mkdir()
    for path in (*old, other):
        game = GAME if path in old else "another"
        path.write_text(json.dumps({"game": game, "settings": {"against": "random"}}))
    for run in ("one", "two"):
        run_learner(words(tmp_path, redis_socket, run, "--T-max", 1000), Stop())
    assert not any(path.exists() for path in old) and other.exists(), "an earlier run's are no longer shown"
    assert len(list(old[0].parent.glob("earlier_matches_*_1.json"))) == 3
    states = [
        load_snapshot(last_models(tmp_path / run, "pettingzoo_tictactoe_v3")[0]) for run in ("one", "two")
    ]
    left, right = (state["acting_weights"] for state in states)
    assert all(torch.equal(left[name], right[name]) for name in left)

    assert not list(tmp_path.glob("*/best_model_*")), "no score of play against itself is a best one"
    keys = Keys("one")
    members = read_members(client, keys)
    files = {
        int(path.stem.rpartition("_")[2]): path for path in (tmp_path / "one").glob("pool_*.safetensors")
    }
    assert len(members) == 3 and sorted(files) == members
    weights = load_file(files[members[-1]])
    assert all(weights[name].shape == left[name].shape for name in left)

    words_of = ("--model", last_models(tmp_path / "one", "pettingzoo_tictactoe_v3")[0], "--against", "pool")
    place = ("--path-to-results", tmp_path / "one", "--evaluation-episodes", 4, "--threads", 1)
    film = ("--ratings", "--record", tmp_path / "film.mp4")
    text = run_program("test_multiple_seed.py", *words_of, *place, *film, log=tmp_path / "log")
    assert [f"{GAME} against update {member}: 4 games" in text for member in members] == [True] * 3
    assert "members of the pool play each other: 12 games" in text
    check_ratings(tmp_path / "one", members)
    assert len(list(tmp_path.glob("film_*.mp4"))) == 3

    check_opponents(str(words_of[1]), members)

    client.flushall()
    files[members[0]].write_bytes(b"damaged")
    later = files[members[1]].with_name("pool_pettingzoo_tictactoe_v3_9999.safetensors")
    later.write_bytes(files[members[1]].read_bytes())
    run_learner(words(tmp_path, redis_socket, "one", "--T-max", 1040), Stop())
    assert read_members(client, keys) == members[1:]
    assert later.with_suffix(".earlier").exists() and not later.exists()
    held = read_member(client, keys, members[1])
    assert held is not None and held.payload == files[members[1]].read_bytes()


def check_ratings(folder: Path, members: list[int]) -> None:
    """Of all pairs of pool and snapshot, in the file and in the page, which has the run's settings."""
    document = json.loads((folder / "matches_pettingzoo_tictactoe_v3_pool.json").read_text())
    assert [each["updates"] for each in document["players"][:-1]] == members
    assert {tuple(each["players"]) for each in document["pairs"]} == {
        *combinations(range(3), 2),
        *((3, member) for member in range(3)),
    }
    assert all(len(each["results"]) == 4 for each in document["pairs"])
    page = (folder / "Reward_pettingzoo_tictactoe_v3.html").read_text(encoding="utf-8")
    assert "<h2>Matches<" in page and "<h2>Ratings<" in page
    assert "<td>--pool-every</td><td>150</td>" in page and "<td>--ratings</td>" not in page


def check_opponents(model: str, members: list[int]) -> None:
    """Past selves are as noisy as who plays them, and not the same; random plays a snapshot; other games are
    told apart.
    """

    def named(*flags: str) -> list[Opponent]:
        args = read_args(["--model", model, *flags])
        candidate = snapshot_candidate(args)
        return list(opponents_of(args, candidate, candidate.args.select(EnvConfig)))

    pool = named("--against", "pool", "--evaluation-epsilon", "0.5")
    assert [(each.name, each.updates) for each in pool] == [(f"update {each}", each) for each in members]
    assert all(isinstance(each.policy, EpsilonPolicy) for each in pool)

    (prefix,) = {path.stem.rpartition("_")[0] for path in Path(model).parent.glob("pool_*.safetensors")}
    newest = Path(model).with_name(f"{prefix}_{members[-1]}.safetensors")
    itself = newest.with_stem(f"{prefix}_{load_snapshot(Path(model))['updates']}")
    itself.write_bytes(newest.read_bytes())
    assert [each.updates for each in named("--against", "pool")] == members, "it is no past self"
    itself.unlink()

    drawn = read_args(["--game", GAME, "--agent", "random", "--against", model])
    candidate = baseline_candidate(drawn)
    config = candidate.args.select(EnvConfig)
    (opponent,) = opponents_of(drawn, candidate, config)
    assert play_matches(candidate.policy, opponent.policy, config, 2, 1, 0, 2).record().games == 2

    args = read_args(["--model", model, "--against", model])
    other = snapshot_candidate(args)
    other = other._replace(args=other.args.model_copy(update={"game": "pettingzoo:connect_four_v3"}))
    with pytest.raises(SnapshotError, match="made with game pettingzoo:tictactoe_v3, not pettingzoo:connect"):
        list(opponents_of(args, other, config))
    transferred = args.model_copy(update={"transfer": True})
    with pytest.raises(AgentError, match="made with --game pettingzoo:tictactoe_v3 .here"):
        list(opponents_of(transferred, other, config))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--against Random", "There is no snapshot Random: did you mean --against random"),
        ("--against pool", "name it with --model, and leave out --agent random"),
    ],
)
def test_a_mistake_about_the_opponent_is_one_sentence(words: str, sentence: str) -> None:
    args = read_args(["--game", GAME, "--agent", "random", *words.split()])
    candidate = baseline_candidate(args)
    with pytest.raises(UserError, match=sentence):
        list(opponents_of(args, candidate, candidate.args.select(EnvConfig)))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            "--game CartPole-v1 --agent dqn --opponents past",
            "is for games of two seats, which CartPole-v1 is not",
        ),
        (f"--game {GAME} --agent ppo --discount -1 --opponents past", "learns from its own moves alone"),
        ("--game CartPole-v1 --agent dqn --discount -1", "is for games by turns, which CartPole-v1 is not"),
        (f"--game {GAME} --agent ppo_rnd --discount -1", "returns that do not change sides"),
        (f"--game {GAME} --agent ppo_rnd", "returns that do not change sides"),
        (f"--game {GAME} --agent naf", "needs continuous actions"),
        (f"--game {GAME} --agent dqn --discount -1 --intrinsic rnd", "rewards that do not change sides"),
        (f"--game {GAME} --agent dqn --discount -1 --history-length 2", "--history-length 1 fits"),
    ],
)
def test_a_mistake_is_one_sentence(flags: str, sentence: str) -> None:
    with pytest.raises((EnvError, AgentError), match=sentence):
        check_agent_fits(setting_of(read_args(flags.split())))
