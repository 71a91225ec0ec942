import math
from pathlib import Path

from lab.search.graphs import PANELS, TrialPoint, best_of, parameter_graphs, write_parameters_png
from reporting.pages.graph import Marks, plotly_panels

POINTS = [
    TrialPoint("trial_0", {"lr": 0.0001, "batch-size": 32, "baseline": True}, 0.5, "finished"),
    TrialPoint("trial_1", {"lr": 0.01, "batch-size": 64, "baseline": False}, 0.7, "finished"),
    TrialPoint("trial_2", {"lr": 0.001, "batch-size": 64, "baseline": True}, 0.1, "stopped early"),
    TrialPoint("trial_3", {"lr": 1.0, "batch-size": 64, "baseline": True}, math.nan, "failed"),
]


def test_axes_suit_their_parameters() -> None:
    lr, batch_size, baseline = (graph.x for graph in parameter_graphs(POINTS, "fitness"))
    assert lr.logarithmic and not batch_size.logarithmic and batch_size.whole and not lr.whole
    assert baseline.categories == ("False", "True")
    assert parameter_graphs([], "fitness") == parameter_graphs(POINTS[3:], "fitness") == []


def test_categories_are_places_on_their_axis() -> None:
    *_, baseline = parameter_graphs(POINTS, "fitness")
    finished, stopped, ring = baseline.parts
    assert isinstance(finished, Marks) and isinstance(stopped, Marks) and isinstance(ring, Marks)
    assert (list(finished.x), list(stopped.x), list(ring.x)) == ([1, 0], [1], [0])


def test_a_mark_for_each_trial_with_a_result_and_a_ring_round_the_best() -> None:
    best = best_of(POINTS)
    assert best is not None and best.name == "trial_1" and best_of(POINTS[3:]) is None
    figure = plotly_panels(parameter_graphs(POINTS, "fitness"), PANELS, 350, "Nothing.")
    finished, stopped, ring = figure.data[:3]
    assert (finished.name, stopped.name, ring.name) == ("finished", "stopped early", "best: trial_1")
    assert (list(finished.x), list(finished.y)) == ([0.0001, 0.01], [0.5, 0.7])
    assert (list(ring.x), list(ring.y)) == ([0.01], [0.7])
    assert len(figure.data) == 9 and figure.layout.xaxis.type == "log"
    assert [trace.showlegend for trace in figure.data] == [True] * 3 + [False] * 6
    assert "trial_2" in stopped.text[0] and "batch-size 64" in stopped.text[0]


def test_as_a_picture_even_of_nothing(tmp_path: Path) -> None:
    for number, points in enumerate((POINTS, POINTS[:2], [])):
        path = tmp_path / f"{number}.png"
        write_parameters_png(path, "some search", parameter_graphs(points, "fitness"))
        assert path.read_bytes().startswith(b"\x89PNG")
    figure = plotly_panels([], PANELS, 350, "No trial has a result yet.")
    assert figure.layout.annotations[0].text == "No trial has a result yet."
