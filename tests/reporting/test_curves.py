import pytest

from reporting.pages.run_figures import learning_curves, learning_figure
from reporting.tables import LearningPoint

POINTS = [
    LearningPoint(
        4 * k, 5 * k, k, {"loss": 10.0 ** -(k % 4), "q": k - 50.0, **({"late": 1.0} if k > 90 else {})}
    )
    for k in range(1, 101)
]


def test_neighbours_are_averaged_where_there_are_too_many() -> None:
    curves = learning_curves(POINTS, limit=50)
    steps, q = curves["q"]
    assert len(steps) == 50
    assert (steps[0], steps[-1]) == (10, 500)
    assert (q[0], q[-1]) == pytest.approx((-48.5, 49.5))
    assert len(curves["late"][0]) == 10


def test_a_strip_per_metric() -> None:
    figure = learning_figure(POINTS)
    assert [trace.name for trace in figure.data] == ["loss", "q", "late"]
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.yaxis2.type is None
    assert list(figure.data[1].y) == [k - 50.0 for k in range(1, 101)]
    assert [(trace.xaxis, trace.yaxis) for trace in figure.data] == [("x", "y"), ("x2", "y2"), ("x3", "y3")]
    level = [point._replace(metrics={**point.metrics, "loss": 1.0}) for point in POINTS]
    assert learning_figure(level).layout.yaxis.type is None, "figures share no axes"
