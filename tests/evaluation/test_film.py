"""Where the curve under a film lies, and films and windows of a user's own environments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from envs.config import EnvConfig, EnvError
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
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.full(2, 0.1 * self.t, np.float32), 1.0, self.t == 4, False, {}

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


def test_films_close_their_environments(own: type[Simulator], tmp_path: Path) -> None:
    path = tmp_path / "own.mp4"
    recorder = FilmRecorder(path, OWN, FrameMetric("sum", lambda frames: frames.sum(1)))
    recorder.write(evaluate(_random(), OWN, 2, 0, 1, observer=recorder))
    assert path.exists() and own.opened == []


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
