import math
from pathlib import Path

from reporting.parameters import TrialPoint, best_of, panels, parameters_figure
from reporting.png import write_parameters_png

POINTS = [
    TrialPoint("trial_0", {"lr": 0.0001, "batch-size": 32, "baseline": True}, 0.5, "finished"),
    TrialPoint("trial_1", {"lr": 0.01, "batch-size": 64, "baseline": False}, 0.7, "finished"),
    TrialPoint("trial_2", {"lr": 0.001, "batch-size": 64, "baseline": True}, 0.1, "stopped early"),
    TrialPoint("trial_3", {"lr": 1.0, "batch-size": 64, "baseline": True}, math.nan, "failed"),
]


def test_axes_suit_their_parameters() -> None:
    lr, batch_size, baseline = panels(POINTS[:3])
    assert lr.logarithmic and not batch_size.logarithmic and batch_size.whole and not lr.whole
    assert baseline.categories == ("False", "True")
    assert (lr.place(POINTS[0]), baseline.place(POINTS[0]), baseline.place(POINTS[1])) == (0.0001, 1, 0)
    assert panels([]) == []


def test_a_mark_for_each_trial_with_a_result_and_a_ring_round_the_best() -> None:
    best = best_of(POINTS)
    assert best is not None and best.name == "trial_1" and best_of(POINTS[3:]) is None
    figure = parameters_figure(POINTS, "fitness")
    finished, stopped, ring = figure.data[:3]
    assert (finished.name, stopped.name, ring.name) == ("finished", "stopped early", "best: trial_1")
    assert (list(finished.x), list(finished.y)) == ([0.0001, 0.01], [0.5, 0.7])
    assert (list(ring.x), list(ring.y)) == ([0.01], [0.7])
    assert len(figure.data) == 9 and figure.layout.xaxis.type == "log"
    assert "trial_2" in stopped.text[0] and "batch-size 64" in stopped.text[0]


def test_as_a_picture_even_of_nothing(tmp_path: Path) -> None:
    for number, points in enumerate((POINTS, POINTS[:2], [])):
        path = tmp_path / f"{number}.png"
        write_parameters_png(path, "some search", points, "fitness")
        assert path.read_bytes().startswith(b"\x89PNG")
    assert parameters_figure([], "fitness").layout.annotations[0].text == "No trial has a result yet."
