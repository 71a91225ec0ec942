"""Where the curve under a film lies, and films and windows of a user's own environments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import cv2
import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from envs.config import EnvConfig, EnvError, EnvFailure
from envs.registry import describe_env
from evaluation import film
from evaluation.evaluator import evaluate
from evaluation.film import (
    HEIGHT,
    MARGIN,
    NOW,
    PAPER,
    STEPS_SHOWN,
    FilmRecorder,
    FrameMetric,
    PlayWindow,
    Strip,
)
from evaluation.policies import Policy, baseline_policy
from evaluation.scenes import scenes_of_play
from own_code import code as own_code
from own_code.code import OwnCode

WIDTH = 480
OWN = EnvConfig(
    "test/Own-v0", 4, 0.25, disable_saber_mode=False, max_stuck_time=300.0, stuck_is_terminal=False
)


class Simulator(gymnasium.Env[Any, Any]):
    """Counts itself while it is open, as a simulator's process would be there."""

    metadata = {"render_modes": ["rgb_array"]}
    observation_space, action_space = Box(-1, 1, (2,)), Discrete(3)
    opened: list[Simulator] = []

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.opened.append(self)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t, self.end = 0, self.length()
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.seen(), 1.0, self.t == self.end, False, {}

    def length(self) -> int:
        return 4

    def seen(self) -> Any:
        return np.full(2, 0.1 * self.t, np.float32)

    def render(self) -> Any:
        return np.zeros((40, 40, 3), np.uint8)

    def close(self) -> None:
        self.opened.remove(self)


@pytest.fixture
def own() -> Iterator[type[Simulator]]:
    """The environment of OWN, for a test to change."""

    class Own(Simulator):
        opened: list[Simulator] = []

    gymnasium.register(OWN.game, entry_point=lambda **given: Own(**given))
    yield Own
    gymnasium.registry.pop(OWN.game)


def _random() -> Policy:
    return baseline_policy("random", describe_env(OWN))


def test_films_close_their_environments(
    own: type[Simulator], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "own.mp4"
    recorder = FilmRecorder(path, OWN, FrameMetric("sum", lambda frames: frames.sum(1)))
    recorder.write(evaluate(_random(), OWN, 2, 0, 1, observer=recorder))
    assert path.exists() and own.opened == [] and caplog.messages == []


def _filmed(path: Path) -> None:
    recorder = FilmRecorder(path, OWN)
    recorder.write(evaluate(_random(), OWN, 1, 0, 1, observer=recorder))


def test_a_film_of_another_episode_says_so(
    own: type[Simulator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its random numbers are not those of its seed."""
    number = count()
    monkeypatch.setattr(own, "seen", lambda env: np.full(2, 0.001 * next(number), np.float32))
    _filmed(tmp_path / "own.mp4")
    said = (
        f"{OWN.game} does not repeat its episode from its seed, so that a film shows another than was played."
    )
    assert caplog.messages == [said]


def test_a_replay_that_ends_early_says_so(
    own: type[Simulator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = iter((4, 4, 2))
    monkeypatch.setattr(own, "length", lambda env: next(lengths, 2))
    with pytest.raises(EnvError, match="does not repeat its episode from its seed"):
        _filmed(tmp_path / "own.mp4")
    assert not own.opened and not (tmp_path / "own.mp4").exists()


@pytest.mark.parametrize("when", ["__init__", "reset", "step"])
def test_an_environment_that_fails_while_it_draws_is_named(
    when: str, own: type[Simulator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(env: Simulator, *given: Any, **named: Any) -> Any:
        if (env.render_mode if when != "__init__" else named.get("render_mode")) is None:
            return plain(env, *given, **named)
        raise RuntimeError("no display :0")

    plain = getattr(own, when)
    monkeypatch.setattr(own, when, fails)
    with pytest.raises(EnvFailure, match=f"The environment {OWN.game} failed: RuntimeError: no display :0"):
        _filmed(tmp_path / "own.mp4")


def test_a_page_of_scenes_closes_its_environments(own: type[Simulator]) -> None:
    scenes = scenes_of_play(lambda states: np.zeros(len(states), np.int64), OWN, 1, 0, [0, 2])
    assert scenes[1].picture is not None and own.opened == []


def test_a_window_closes_its_environments(own: type[Simulator], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a display: what OpenCV would show is counted."""
    shown: list[str] = []
    monkeypatch.setattr(film, "open_window", lambda title: None)
    monkeypatch.setattr(cv2, "imshow", lambda title, picture: shown.append(title))
    for name in ("setWindowTitle", "waitKey"):
        monkeypatch.setattr(cv2, name, lambda *_: None)
    window = PlayWindow(OWN)
    evaluate(_random(), OWN, 3, 0, 1, observer=window)
    assert len(shown) == 3 * 4 and len(own.opened) == 1
    window.close()
    assert own.opened == []


def test_a_film_that_cannot_begin_closes_its_environment(
    own: type[Simulator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(env: Simulator, **_: Any) -> Any:
        raise EnvError("no display")

    monkeypatch.setattr(own, "reset", fails)
    with pytest.raises(EnvError, match="no display"):
        FilmRecorder(tmp_path / "own.mp4", OWN)
    assert own.opened == []


def _marked(step: int, values: np.ndarray) -> tuple[float, float]:
    """Centre (x, y) of the dot at the present step."""
    picture = Strip("value", values).draw(step, WIDTH)
    assert picture.shape == (HEIGHT, WIDTH, 3)
    rows, columns = np.where((picture == NOW).all(2))
    return float(columns.mean()), float(rows.mean())


def test_the_dot_goes_to_the_right_edge_and_stays_there() -> None:
    values = np.zeros(3 * STEPS_SHOWN)
    first, half, full, later = (
        _marked(step, values)[0] for step in (0, (STEPS_SHOWN - 1) // 2, STEPS_SHOWN - 1, 2 * STEPS_SHOWN)
    )
    assert abs(first - MARGIN) < 1.5 and abs(half - WIDTH / 2) < 2.5
    assert abs(full - (WIDTH - MARGIN)) < 1.5 and full == later


def test_the_largest_value_of_the_episode_is_on_top_and_the_smallest_at_the_bottom() -> None:
    values = np.array([0.2, 5.0, 1.0, 0.1])
    heights = [_marked(step, values)[1] for step in range(4)]
    assert np.argsort(heights).tolist() == [1, 2, 0, 3]
    assert heights[1] < 26 and abs(heights[3] - (HEIGHT - MARGIN)) < 1.5


def test_only_what_was_played_is_drawn() -> None:
    values = np.linspace(0.0, 1.0, STEPS_SHOWN)
    picture = Strip("value", values).draw(10, WIDTH)
    below_the_text = picture[24:]
    drawn = np.where((below_the_text != PAPER).any(2))[1]
    assert 10 < drawn.max() < WIDTH / 10


class Together:
    """Two seats that move at the same time, three times. Action 0 is forbidden at first, to one also 1."""

    possible_agents = ["one", "other"]

    def __init__(self) -> None:
        self.agents = list[str]()

    def observation_space(self, seat: str) -> Any:
        return Dict(observation=Box(-1, 1, (2,)), action_mask=Box(0, 1, (3,), np.int8))

    def action_space(self, seat: str) -> Any:
        return Discrete(3)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.t = [*self.possible_agents], 0
        return self._seen(), {seat: {} for seat in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        assert all(self._seen()[seat]["action_mask"][action] for seat, action in actions.items()), "illegal"
        self.t += 1
        ends = dict.fromkeys(self.agents, self.t == 3)
        told: Any = self._seen(), dict.fromkeys(self.agents, 1.0), ends, dict.fromkeys(self.agents, False), {}
        self.agents = [] if self.t == 3 else self.agents
        return told

    def _seen(self) -> Any:
        masks: dict[str, Any] = {"one": [self.t > 0, 1, 1], "other": [self.t > 0, self.t > 0, 1]}
        numbers = np.full(2, self.t / 9, np.float32)
        return {seat: {"observation": numbers, "action_mask": np.int8(masks[seat])} for seat in masks}

    def render(self) -> Any:
        return np.zeros((40, 40, 3), np.uint8)

    def close(self) -> None:
        pass


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> EnvConfig:
    name = "together.py:Together"
    monkeypatch.setitem(own_code._GIVEN, name, OwnCode(name, "", sys.modules[__name__], "Together"))
    return replace(OWN, game=name)


def test_a_game_is_filmed_whose_seats_may_not_take_action_0_at_first(
    together: EnvConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = FilmRecorder(tmp_path / "game.mp4", together)
    random = baseline_policy("random", describe_env(together))
    recorder.write(evaluate(random, together, 2, 0, 2, observer=recorder))
    assert (tmp_path / "game.mp4").exists() and caplog.messages == []


@pytest.mark.parametrize(
    ("drawn", "sentence"),
    [
        (None, "The environment together.py:Together has no picture to show."),
        (
            RuntimeError("no display"),
            "The environment together.py:Together could not be drawn: RuntimeError: no",
        ),
        (np.zeros((5, 4)), r"render\(\) of together.py:Together gives \[5, 4\] of uint8 instead"),
    ],
)
def test_a_game_of_several_players_that_draws_no_picture_is_one_sentence(
    drawn: Any, sentence: str, together: EnvConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def render(game: Together) -> Any:
        if isinstance(drawn, Exception):
            raise drawn
        return drawn

    monkeypatch.setattr(Together, "render", render)
    with pytest.raises(EnvError, match=sentence):
        FilmRecorder(tmp_path / "game.mp4", together)
