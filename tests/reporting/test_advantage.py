from pathlib import Path

import numpy as np
import pytest

from reporting.advantage import Mark, Surface, advantage_figure, write_advantage_html

X, Y = np.linspace(-1, 1, 5, dtype=np.float32), np.linspace(0, 2, 3, dtype=np.float32)


def surface(picture: bool) -> Surface:
    advantages = -((X - 0.5) ** 2) - (Y[:, None] - 1) ** 2  # [Y, X]
    marks = [Mark("chosen", np.array([0.5, 1.0]), 0.0), Mark("taken", np.array([-0.5, 1.0]), -1.0)]
    seen = np.zeros((4, 6, 3), np.uint8) if picture else None
    return Surface("step 50", seen, np.array([1.0, 2.0, 3.0]), [X, Y], advantages, marks)


def curve() -> Surface:
    return surface(False)._replace(
        values=[X], advantages=-((X - 0.5) ** 2), marks=[Mark("chosen", np.array([0.5]), 0.0)]
    )


def test_two_components_make_a_surface_with_its_marks() -> None:
    image, drawn, chosen, taken = advantage_figure(surface(True), [0, 1], -4.0).data
    assert image.type == "image"
    assert (drawn.type, drawn.cmin, drawn.cmax) == ("surface", -4.0, 0)
    row, column = np.unravel_index(drawn.z.argmax(), drawn.z.shape)
    assert (drawn.x[column], drawn.y[row]) == (0.5, 1.0)
    for mark, name, x, z in ((chosen, "chosen", 0.5, 0.0), (taken, "taken", -0.5, -1.0)):
        assert (mark.type, mark.name, mark.x[0], mark.y[0], mark.z[0]) == ("scatter3d", name, x, 1.0, z)


def test_one_component_makes_a_curve() -> None:
    bars, line, chosen = advantage_figure(curve(), [0], -2.25).data
    assert (bars.type, list(bars.y)) == ("bar", [1, 2, 3])
    assert (line.type, line.x[line.y.argmax()]) == ("scatter", 0.5)
    assert (chosen.x[0], chosen.y[0]) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("surfaces", "components"), [([surface(True), surface(False)], [0, 1]), ([curve()], [2])]
)
def test_a_page_has_a_card_per_frame(tmp_path: Path, surfaces: list[Surface], components: list[int]) -> None:
    path = tmp_path / "a.html"
    write_advantage_html(path, "maze:1", surfaces, components, "advantages seen by <naf>")
    page = path.read_text(encoding="utf-8")
    assert page.count("plotly.js v") == 1
    assert page.count("<h2>step 50<small>chosen (0.5") == len(surfaces)
    assert "&lt;naf&gt;" in page
