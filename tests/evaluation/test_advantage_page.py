from base64 import b64decode
from pathlib import Path

import cv2
import numpy as np
import pytest

from evaluation.advantage_page import Mark, Surface, advantage_figure, write_advantage_html

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
    assert image.type == "scatter"
    assert (drawn.type, drawn.cmin, drawn.cmax) == ("surface", -4.0, 0)
    row, column = np.unravel_index(drawn.z.argmax(), drawn.z.shape)
    assert (drawn.x[column], drawn.y[row]) == (0.5, 1.0)
    for mark, name, x, z in ((chosen, "chosen", 0.5, 0.0), (taken, "taken", -0.5, -1.0)):
        assert (mark.type, mark.name, mark.x[0], mark.y[0], mark.z[0]) == ("scatter3d", name, x, 1.0, z)


def test_one_component_makes_a_curve() -> None:
    bars, line, chosen = advantage_figure(curve(), [0], -2.25).data
    assert (bars.fill, list(bars.y)) == ("tozeroy", [1, 2, 3])
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


def test_a_picture_adds_no_more_than_its_png(tmp_path: Path) -> None:
    """Pendulum's are of 500 x 500 pixels; as numbers six of them took 30 MB."""
    seen = np.zeros((500, 500, 3), np.uint8)
    seen[100:400, 240:260] = 205, 77, 77  # the pole
    sizes = {}
    for name, shown in (("without", None), ("with", seen)):
        path = tmp_path / f"{name}.html"
        write_advantage_html(path, "pendulum", [surface(False)._replace(picture=shown)] * 6, [0, 1], "")
        sizes[name] = path.stat().st_size
    assert sizes["with"] - sizes["without"] < 60_000
    image = advantage_figure(surface(False)._replace(picture=seen), [0, 1], -4.0).layout.images[0]
    png = np.frombuffer(b64decode(image.source.partition(",")[2]), np.uint8)
    read = cv2.imdecode(png, cv2.IMREAD_COLOR)
    assert read is not None and np.array_equal(read[..., ::-1], seen)
