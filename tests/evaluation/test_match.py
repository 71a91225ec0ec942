"""Matches: who wins is counted for the right player, seats are swapped, openings are shared."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from args import UserError, read_args
from envs.config import EnvConfig, EnvError
from envs.registry import describe_env, make_env, make_playback
from evaluation.evaluator import evaluate
from evaluation.film import NOW, PAPER, FilmRecorder
from evaluation.matches.film import MatchFilm, caption
from evaluation.matches.play import play_matches
from evaluation.matches.result import Matches, Tally, matches_text, write_matches
from evaluation.policies import ConstantBaseline, RandomBaseline
from own_code import code as own_code
from own_code.code import OwnCode
from reporting.film import FilmError
from test_multiple_seed import run_evaluation
from tests.processes import run
from tests.values.pebbles import HEAP, Pebbles
from wiring.checks import check_agent_fits
from wiring.setting import setting_of

CONFIG = EnvConfig("pettingzoo:tictactoe_v3", 1, 0.0, False, 300.0, False)
PONG = EnvConfig(
    "pettingzoo:pong_v3", 4, 0.0, False, 300.0, False, max_episode_steps=120, resize=42, grey=True
)
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


class Minimax:
    """Plays tic-tac-toe perfectly: the first of the best moves."""

    history_length = 1

    def __init__(self) -> None:
        self.seen: list[NDArray[Any]] = []
        self._values: dict[tuple[int, ...], int] = {}

    def begin(self, rows: int) -> None:
        """Nothing to prepare."""

    def start(self, row: int, seed: int) -> None:
        """Nothing is random."""

    def act(self, s_t: NDArray[Any]) -> NDArray[Any]:
        self.seen.append(s_t[:, -1].copy())
        return np.array([self._best(self._board(frame)) for frame in s_t[:, -1]])

    @staticmethod
    def _board(frame: NDArray[Any]) -> tuple[int, ...]:
        """1 for an own piece, -1 for the other's."""
        planes = frame[:18].reshape(9, 2)
        return tuple((planes[:, 0] - planes[:, 1]).astype(int).tolist())

    def _best(self, board: tuple[int, ...]) -> int:
        free = [place for place in range(9) if board[place] == 0]
        return max(free, key=lambda place: -self._value(self._after(board, place))) if free else 0

    @staticmethod
    def _after(board: tuple[int, ...], place: int) -> tuple[int, ...]:
        """As the other player sees it."""
        return tuple(-1 if each == place else -piece for each, piece in enumerate(board))

    def _value(self, board: tuple[int, ...]) -> int:
        """To who is to move."""
        if board not in self._values:
            free = [place for place in range(9) if board[place] == 0]
            if any(all(board[place] == -1 for place in line) for line in LINES):
                value = -1
            elif not free:
                value = 0
            else:
                value = max(-self._value(self._after(board, place)) for place in free)
            self._values[board] = value
        return self._values[board]


def test_a_perfect_player_never_loses_and_its_twin_draws() -> None:
    random = RandomBaseline(describe_env(CONFIG))
    whole = play_matches(Minimax(), random, CONFIG, 200, 1, 0, 16).record()
    assert whole.losses == 0 and whole.wins > 150
    assert play_matches(random, Minimax(), CONFIG, 200, 1, 0, 16).record().wins == 0
    assert play_matches(Minimax(), Minimax(), CONFIG, 6, 1, 0, 4).record() == Tally(0, 6, 0)


def test_games_do_not_depend_on_how_many_are_played_at_once() -> None:
    random = RandomBaseline(describe_env(CONFIG))
    one, many = (play_matches(random, random, CONFIG, 40, 3, 2, width).results for width in (1, 16))
    assert np.array_equal(one, many) and len(set(one.tolist())) == 3


def test_a_pair_of_games_has_one_opening_and_both_seats() -> None:
    """After 3 random plies the pair's players see the same board; pairs differ."""
    first, second = Minimax(), Minimax()
    matches = play_matches(first, second, CONFIG, 2, 5, 3, 2)
    assert matches.began.tolist() == [True, False]
    assert np.array_equal(first.seen[3][0], first.seen[3][1])
    boards = {tuple(play_first(seed)) for seed in range(6)}
    assert len(boards) > 1


def play_first(seed: int) -> list[float]:
    player = Minimax()
    play_matches(player, Minimax(), CONFIG, 1, seed, 3, 1)
    return [float(each) for each in player.seen[3][0]]


def test_what_a_record_says() -> None:
    record = Tally(6, 2, 2)
    assert record.games == 10 and record.score == pytest.approx(0.7)
    assert record.interval == pytest.approx((0.397, 0.892), abs=0.001)
    assert Tally(30, 0, 0).interval == pytest.approx((0.886, 1.0), abs=0.001)
    assert record.elo == pytest.approx(400 * math.log10(0.7 / 0.3))
    assert Tally(3, 0, 0).elo == math.inf and Tally(0, 0, 3).elo == -math.inf
    for games in range(1, 200):  # rounding must leave an end that is reached exactly there
        assert Tally(games, 0, 0).elo_interval[1] == math.inf
        assert Tally(0, 0, games).elo_interval[0] == -math.inf
    text = matches_text(Matches(np.array([1, -1, 0]), np.array([True, False, True])), "a game", "random")
    assert "a game against random: 3 games" in text
    rows = [line.split() for line in text.splitlines()[2:5]]
    assert rows[0][:5] == ["first", "seat", "1", "1", "0"] and rows[1][:5] == [
        "second",
        "seat",
        "0",
        "0",
        "1",
    ]
    assert rows[2][:4] == ["both", "1", "1", "1"]
    assert text.splitlines()[-1].startswith("It had the first seat once more than the second")
    assert matches_text(Matches(np.array([1]), np.array([True])), "a game", "random").startswith(
        "a game against random: 1 game\n"
    )
    low, high = record.elo_interval
    assert low == pytest.approx(400 * math.log10(0.397 / 0.603), abs=1) and high > record.elo > low


def test_elo_is_written_and_null_where_it_is_infinite(tmp_path: Path) -> None:
    began = np.array([True, False, True])
    write_matches(tmp_path / "m.json", Matches(np.array([1, -1, 1]), began), CONFIG, {})
    document = json.loads((tmp_path / "m.json").read_text(), parse_constant=pytest.fail)
    assert document["both"]["elo"] == pytest.approx(400 * math.log10(2))
    low, high = document["both"]["elo_interval"]
    assert low < document["both"]["elo"] < high
    assert document["first_seat"]["elo"] is None and document["first_seat"]["elo_interval"][1] is None


class Watcher:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.games: dict[int, list[Any]] = {}
        self.frames: dict[int, list[Any]] = {}
        self.seeds: dict[int, int] = {}

    def start(self, episode: int, seed: int) -> None:
        self.seeds[episode], self.games[episode], self.frames[episode] = seed, [], []

    def step(self, episode: int, action: Any, frame: Any) -> None:
        self.games[episode].append(action)
        self.frames[episode].append(frame)


def test_an_observer_sees_games_that_can_be_played_again() -> None:
    """Also where openings ended some games, which began anew: seven plies of tic-tac-toe often do."""
    random, watcher = RandomBaseline(describe_env(CONFIG)), Watcher()
    results = play_matches(random, random, CONFIG, 12, 4, 7, 5, observer=watcher).results
    for game, result in enumerate(results.tolist()):
        env = make_env(CONFIG, [watcher.seeds[game]])
        env.reset()
        for move in watcher.games[game][:-1]:
            assert not env.step(np.array([move]))[2].any()
        _, (reward,), (terminated,), _, _ = env.step(np.array([watcher.games[game][-1]]))
        env.close()
        ours = (len(watcher.games[game]) - 1 + game) % 2 == 0  # made the last move
        assert terminated and reward * (1 if ours else -1) == result


def test_a_film_shows_the_first_game_and_who_moves(tmp_path: Path) -> None:
    path, random = tmp_path / "game.mp4", RandomBaseline(describe_env(CONFIG))
    film = MatchFilm(path, CONFIG, ("update 7", "random"))
    play_matches(random, random, CONFIG, 4, 2, 4, 2, observer=film)
    watcher = Watcher()
    play_matches(random, random, CONFIG, 4, 2, 4, 2, observer=watcher)
    film.write()
    capture = cv2.VideoCapture(str(path))
    assert capture.get(cv2.CAP_PROP_FRAME_COUNT) == len(watcher.games[0])
    assert capture.get(cv2.CAP_PROP_FPS) == 1
    capture.release()
    first, second = (caption(("update 7", "random"), moved, 2000) for moved in (0, 1))
    marked = [np.where((each == NOW).all(2))[0].mean() for each in (first, second)]
    assert marked[0] < len(first) / 2 < marked[1]
    long = caption(("a" * 200, "random"), 0, 300)
    assert long.shape[1] == 300 and (long[:, -4:] == PAPER).all(), "it fits"


class TwoFirst(Pebbles):
    """Pebbles that can be drawn, of which the first move must take two: action 0 is forbidden."""

    def observe(self, seat: str) -> dict[str, Any]:
        own = super().observe(seat)
        return {**own, "action_mask": own["action_mask"] * [self._left < HEAP, True]}

    def render(self) -> NDArray[np.uint8]:
        return np.full((10, 20, 3), 50 * self._left, np.uint8)


def test_a_game_is_filmed_whose_first_position_forbids_action_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, path = "two_first.py:TwoFirst", tmp_path / "game.mp4"
    monkeypatch.setitem(own_code._GIVEN, name, OwnCode(name, "", sys.modules[__name__], "TwoFirst"))
    config = replace(CONFIG, game=name)
    random, recorder = RandomBaseline(describe_env(config)), FilmRecorder(path, config)
    recorder.write(evaluate(random, config, 1, 2, 1, observer=recorder))
    assert path.exists()
    film = MatchFilm(path, config, ("random", "random"))
    play_matches(random, random, config, 2, 2, 0, 1, observer=film)
    film.write()


def test_games_that_end_within_their_opening_are_refused() -> None:
    random = RandomBaseline(describe_env(CONFIG))
    with pytest.raises(EnvError, match="give fewer --opening-plies"):
        play_matches(random, random, CONFIG, 2, 1, 9, 2)


class Pay:
    """Two moves each; action 1 pays a point at once, to whoever took it."""

    possible_agents = ("first", "second")

    def observation_space(self, seat: str) -> Box:
        return Box(0, 4, (1,), np.int8)

    def action_space(self, seat: str) -> Discrete:
        return Discrete(2)

    def reset(self, seed: int | None = None) -> None:
        self._moves, self.agent_selection = 0, "first"
        self.rewards, self.truncations = dict.fromkeys(self.possible_agents, 0.0), {"first": False}
        self.terminations = {"first": False}

    def observe(self, seat: str) -> NDArray[Any]:
        return np.array([self._moves])

    def step(self, action: int) -> None:
        mover, other = self.agent_selection, self.possible_agents[self.agent_selection == "first"]
        self.rewards, self.agent_selection = {mover: float(action), other: -float(action)}, other
        self._moves += 1
        self.terminations = {"first": self._moves == 4}

    def agent_iter(self) -> None:
        """By turns."""

    def close(self) -> None:
        """Nothing to end."""


def test_points_on_the_way_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """From either seat, though the last move pays nothing to anybody who never takes a point."""
    monkeypatch.setitem(
        own_code._GIVEN, "pay.py:Pay", OwnCode("pay.py:Pay", "", sys.modules[__name__], "Pay")
    )
    config = EnvConfig("pay.py:Pay", 1, 0.0, False, 300.0, False)
    takes, leaves = (ConstantBaseline(action, describe_env(config)) for action in "10")
    for ours, theirs, result in ((takes, leaves, 1), (leaves, takes, -1), (takes, takes, 0)):
        assert play_matches(ours, theirs, config, 4, 1, 0, 2).results.tolist() == [result] * 4


def test_other_games_are_refused() -> None:
    random = RandomBaseline(describe_env(CONFIG))
    with pytest.raises(EnvError, match="no game of two seats"):
        play_matches(random, random, EnvConfig("probe:catch", 1, 0.0, False, 300.0, False), 2, 1, 0, 2)


def test_by_the_program(tmp_path: Path) -> None:
    """Random against random; a game by turns is played so without being asked."""
    words = ("--game", CONFIG.game, "--agent", "random", "--path-to-results", tmp_path, "--threads", 1)
    text = run("test_multiple_seed.py", *words, "--evaluation-episodes", 30, log=tmp_path / "log")
    assert f"{CONFIG.game} against random: 30 games" in text
    document = json.loads((tmp_path / "matches_pettingzoo_tictactoe_v3_random.json").read_text())
    assert (
        sum(document["both"][name] for name in ("wins", "draws", "losses")) == len(document["results"]) == 30
    )
    assert document["settings"]["opening_plies"] == 4


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--ratings --against random", "give --against pool too"),
        ("--against random --render", "--record game.mp4 films its first game"),
        ("--against random --record game.png", "A film is an .mp4 file"),
        (
            "--record game.mp4 --game pettingzoo:pong_v3 --resize 42 --evaluation-episodes 3",
            "2 seats: make --evaluation-episodes a multiple",
        ),
    ],
)
def test_a_mistake_is_one_sentence(words: str, sentence: str, tmp_path: Path) -> None:
    own = f"--game {CONFIG.game} --agent random --path-to-results {tmp_path}"
    with pytest.raises((UserError, FilmError, EnvError), match=sentence):
        run_evaluation(read_args([*own.split(), *words.split()]))


@pytest.mark.slow
def test_a_film_of_seats_that_move_at_the_same_time(tmp_path: Path) -> None:
    """From both seats' moves the same game again: in a match, and of a network against itself."""
    words = "--game pettingzoo:pong_v3 --resize 42 --grey --max-episode-steps 12 --agent random"
    common = [*words.split(), "--evaluation-episodes", 4, "--path-to-results", tmp_path]
    path = tmp_path / "pong.mp4"
    for against in ((), ("--against", "random")):
        run_evaluation(read_args([*map(str, [*common, *against, "--record", path])]))
        capture = cv2.VideoCapture(str(path))
        assert (capture.get(cv2.CAP_PROP_FRAME_COUNT), capture.get(cv2.CAP_PROP_FPS)) == (12, 15)
        capture.release()
        path.unlink()


@pytest.mark.parametrize("of_a_match", [pytest.param(True, marks=pytest.mark.slow), False])
def test_what_an_observer_sees_of_seats_gives_the_game_again(of_a_match: bool) -> None:
    config = replace(PONG, max_episode_steps=12)
    random, watcher = RandomBaseline(describe_env(config)), Watcher()
    if of_a_match:
        play_matches(random, random, config, 6, 4, 0, 2, observer=watcher)
    else:
        evaluate(random, config, 6, 4, 4, observer=watcher)
    for game in (0, 2, 4):
        playback = make_playback(config, watcher.seeds[game])
        assert np.array_equal(playback.first(), watcher.frames[game][0])
        moves = (
            watcher.games[game]
            if of_a_match
            else zip(watcher.games[game], watcher.games[game + 1], strict=True)
        )
        for both, seen in zip(moves, watcher.frames[game][1:], strict=False):
            assert np.array_equal(playback.step(np.array(both))[0], seen)


@pytest.mark.parametrize(("stickiness", "is_told"), [(0.0, True), (0.9, False)])
def test_games_that_repeat_are_told(
    stickiness: float, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Two policies without chance, in a game without chance or with sticky actions."""
    config = replace(PONG, max_episode_steps=30, proba_sticky_actions=stickiness)
    down, up = (ConstantBaseline(action, describe_env(config)) for action in "23")
    play_matches(down, up, config, 6, 4, 0, 2)
    assert ("4 of 6 games were the same as another" in caplog.text) == is_told


class Together:
    """Two seats that share what they gain."""

    possible_agents = ("left", "right")

    def observation_space(self, seat: str) -> Box:
        return Box(0, 1, (1,), np.float32)

    def action_space(self, seat: str) -> Discrete:
        return Discrete(2)

    def reset(self, seed: int | None = None, options: object = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.agents = [*self.possible_agents]
        return self._of_each(np.zeros(1, np.float32)), self._of_each({})

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        self.agents = []
        ends = self._of_each(True), self._of_each(False), self._of_each({})
        return self._of_each(np.zeros(1, np.float32)), self._of_each(float(sum(actions.values()))), *ends

    def _of_each(self, thing: Any) -> dict[str, Any]:
        return dict.fromkeys(self.possible_agents, thing)

    def close(self) -> None:
        """Nothing to end."""


def test_a_match_that_nobody_can_win_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    name = "together.py:Together"
    monkeypatch.setitem(own_code._GIVEN, name, OwnCode(name, "", sys.modules[__name__], "Together"))
    config = replace(PONG, game=name, resize=0, grey=False)
    random = RandomBaseline(describe_env(config))
    assert not play_matches(random, random, config, 8, 4, 0, 2).results.any()
    assert "both seats had the same rewards in all games" in caplog.text


def test_a_discount_above_0_is_refused() -> None:
    with pytest.raises(EnvError, match="give a negative --discount"):
        check_agent_fits(setting_of(read_args(["--game", CONFIG.game, "--agent", "dqn"])))


def test_games_of_moves_at_the_same_time() -> None:
    """Short games of Pong: who has gained more has won; both seats are played, whatever the width."""
    random, still = RandomBaseline(describe_env(PONG)), ConstantBaseline("0", describe_env(PONG))
    one, many = (play_matches(random, still, PONG, 4, 3, 0, width) for width in (1, 4))
    assert np.array_equal(one.results, many.results) and one.began.tolist() == [True, False, True, False]
    back = play_matches(still, random, PONG, 4, 3, 0, 4)
    assert many.results.any() and not np.array_equal(back.results, many.results)
