"""One description, drawn the same twice."""

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from reporting.pages.graph import (
    Axis,
    Bars,
    Graph,
    Line,
    Marks,
    _draw,
    plotly_figure,
    plotly_panels,
    write_png,
)


def rectangles(graph: Graph) -> list[tuple[float, float, float, float]]:
    """Left, bottom, width and height of each bar that matplotlib draws."""
    axes = Figure().subplots()
    _draw(axes, graph)
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return [(bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()) for bar in bars]


STEPS = np.array([0.0, 100.0])
EDGES = np.array([0.5, 2.0]), np.array([1.5, 4.5])
CURVE = Line("mean", STEPS, np.array([1.0, 3.0]), "#1f5fbf", edges=EDGES, band="± 1 std")
ERRORS = np.array([[0.5, 1.0], [0.7, np.nan]])
SCORES = Bars("score", [5.0, -1.0], ["#1f5fbf", "#d1603d"], ERRORS, floor=-2.0)
BESIDE = Marks("published", [1], [4.0], "#1c2733", "diamond", ["a paper"])


def test_a_band_lies_between_its_edges_beside_its_line() -> None:
    graph = Graph(Axis("agent steps", steps=True), "score", [CURVE], legend=True)
    lower, upper, line = plotly_figure(graph, 400).data
    assert [*lower.y] == [0.5, 2.0] and [*upper.y] == [1.5, 4.5] and [*line.y] == [1.0, 3.0]
    assert (upper.fill, upper.name, line.name) == ("tonexty", "± 1 std", "mean")
    axes = Figure().subplots()
    _draw(axes, graph)
    edges = np.asarray(axes.collections[0].get_paths()[0].vertices)
    assert {(x, y) for x, y in edges} == {(0, 0.5), (100, 2), (0, 1.5), (100, 4.5)}
    assert [*np.asarray(axes.lines[0].get_ydata())] == [1, 3]


def test_bars_begin_at_their_floor_and_stand_over_their_categories() -> None:
    graph = Graph(Axis(categories=["dqn", "a2c"]), "score", [SCORES, BESIDE], {"standard": 4.5})
    bars, marks = plotly_figure(graph, 400).data
    assert [*bars.error_y.arrayminus] == [0.5, 1.0] and bars.error_y.array[0] == 0.7
    assert [*bars.y] == [7.0, 1.0] and bars.base == -2.0 and [*bars.customdata] == [5.0, -1.0]
    assert [*marks.x] == [1] and marks.text == ("a paper",)
    assert plotly_figure(graph, 400).layout.legend.yanchor == "bottom", "above: levels are named at the right"
    axes = Figure().subplots()
    _draw(axes, graph)
    tops = [bottom + height for _, bottom, _, height in rectangles(graph)]
    middles = [left + width / 2 for left, _, width, _ in rectangles(graph)]
    assert tops == [5, -1] and middles == pytest.approx([0, 1])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["dqn", "a2c"]
    assert axes.texts[0].get_text() == plotly_figure(graph, 400).layout.annotations[0].text == "standard"


def test_bars_of_several_names_stand_side_by_side() -> None:
    graph = Graph(Axis(categories=["dqn", "a2c"]), "score", [SCORES, SCORES._replace(name="other")])
    (left, _, width, _), _, (next_left, *_), _ = rectangles(graph)
    assert left + width < next_left


def test_panels_share_a_legend_in_which_each_name_stands_once() -> None:
    """The edge of a band has no name."""
    disc = Marks("mean", [1], [3.0], "#1f5fbf", "disc")
    graph = Graph(Axis("agent steps", steps=True), "score", [CURVE, disc])
    other = Graph(Axis("agent steps", steps=True), "score", [CURVE, disc._replace(name="published")])
    shown = [trace.name for trace in plotly_panels([graph, other], 2, 300, "").data if trace.showlegend]
    assert shown == ["± 1 std", "mean", "published"]


def test_a_picture_has_its_size_and_a_sentence_stands_for_nothing(tmp_path: Path) -> None:
    graph = Graph(Axis(), "score", [])
    write_png(tmp_path / "some.png", "nothing", [graph, graph], columns=2, size=(4, 2), widths=(1, 1.3))
    assert matplotlib.image.imread(tmp_path / "some.png").shape[:2] == (220, 440)
    assert plotly_figure(graph, 400, "Nothing yet.").layout.annotations[0].text == "Nothing yet."


def test_names_with_dollar_signs_are_drawn_as_they_stand(tmp_path: Path) -> None:
    """Matplotlib takes `$...$` for a formula, and ends where it is none."""
    odd = "$x_{$"
    bars = SCORES._replace(name=odd)
    graph = Graph(
        Axis(odd, categories=[odd, odd]), odd, [bars, CURVE._replace(band=odd)], {odd: 1.0}, legend=True
    )
    write_png(tmp_path / "odd.png", odd, [graph])
    write_png(tmp_path / "shared.png", odd, [graph, graph], columns=2, shared=True)
    axes = Figure().subplots()
    _draw(axes, graph)
    assert {label.get_text() for label in axes.get_xticklabels()} == {r"\$x_{\$"}
