"""Where the curve under a film lies."""

from __future__ import annotations

import numpy as np

from evaluation.film import HEIGHT, MARGIN, NOW, PAPER, STEPS_SHOWN, Strip

WIDTH = 480


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
