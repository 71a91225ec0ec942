"""`advantage_surface_<game>.html`: what an agent thinks of the actions it could take in given frames."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from reporting.pages.page import AXIS, BLUE, INK, RED, Section, base_layout, curve, titled, write_page

Floats = NDArray[np.float32]

HEIGHT = 430
"""Height in pixels of the figure of one frame."""
_VIEW = {"eye": {"x": 1.75, "y": -1.85, "z": 1.0}}
_MARKS = ((RED, "circle", "top center"), (INK, "diamond", "middle left"))


class Mark(NamedTuple):
    """An action that is shown on the surface."""

    name: str
    action: Floats  # [D] its drawn components
    advantage: float


class Surface(NamedTuple):
    """Advantages around the chosen action in one frame, along D = 1 or 2 components of the action."""

    frame: str  # its name for the reader, e.g. "step 50"
    picture: NDArray[np.uint8] | None  # [h, w, 3], what can be seen there
    observation: Floats  # the newest frame as a vector, drawn where there is no picture
    values: Sequence[Floats]  # the values that each drawn component takes: [X], or [X] and [Y]
    advantages: Floats  # [X], or [Y, X]
    marks: Sequence[Mark]  # the chosen action, and perhaps the one that was taken


def write_advantage_html(
    path: Path, game: str, surfaces: Sequence[Surface], components: Sequence[int], note: str
) -> None:
    """One card per frame: its picture, and beside it a surface (two components) or a curve (one).

    All share one scale of advantages, so that frames can be compared.

    Args:
        components: which components of the action are drawn.
        note: whose advantages these are.
    """
    lowest = min(float(surface.advantages.min()) for surface in surfaces)
    sections = [
        Section(advantage_figure(surface, components, lowest), surface.frame, _marked(surface))
        for surface in surfaces
    ]
    write_page(path, f"{game}: advantage", game, note, [], sections)


def advantage_figure(surface: Surface, components: Sequence[int], lowest: float) -> go.Figure:
    """The figure of one frame; `lowest` is the lower end of its scale of advantages."""
    is_surface = len(components) == 2
    kinds = [{"type": "xy"}, {"type": "scene" if is_surface else "xy"}]
    figure = make_subplots(
        1, 2, column_widths=[0.34, 0.66], specs=[kinds], horizontal_spacing=0.06 if is_surface else 0.14
    )
    _draw_observation(figure, surface)
    if is_surface:
        _draw_surface(figure, surface, components, lowest)
    else:
        _draw_curve(figure, surface, components[0], lowest)
    margin = {"l": 16, "r": 16, "t": 34, "b": 20}
    return figure.update_layout(base_layout(), height=HEIGHT, margin=margin, showlegend=False)


def _marked(surface: Surface) -> str:
    actions = ((mark.name, ", ".join(f"{value:.3g}" for value in mark.action)) for mark in surface.marks)
    return " · ".join(f"{name} ({values})" for name, values in actions)


def _draw_observation(figure: go.Figure, surface: Surface) -> None:
    place = {"row": 1, "col": 1}
    if surface.picture is not None:
        height, width = surface.picture.shape[:2]
        figure.add_trace(go.Scatter(x=[0, width], y=[0, height], mode="none", hoverinfo="skip"), **place)
        size = {"x": 0, "y": 0, "sizex": width, "sizey": height}
        figure.add_layout_image(source=_as_png(surface.picture), xref="x", yref="y", **size)
        figure.update_xaxes(visible=False, range=[0, width], constrain="domain", **place)
        figure.update_yaxes(visible=False, range=[height, 0], scaleanchor="x", constrain="domain", **place)
        return
    bars = go.Scatter(
        y=surface.observation, line={"color": BLUE, "shape": "hvh"}, fill="tozeroy", mode="lines"
    )
    figure.add_trace(bars, **place)
    figure.update_xaxes(titled(AXIS, "component of the observation"), **place).update_yaxes(AXIS, **place)


def _as_png(picture: NDArray[np.uint8]) -> str:
    """The picture as a data URL, a hundredth of the size of its pixels as numbers."""
    _, png = cv2.imencode(".png", picture[..., ::-1])
    return f"data:image/png;base64,{b64encode(png.tobytes()).decode()}"


def _draw_surface(figure: go.Figure, surface: Surface, components: Sequence[int], lowest: float) -> None:
    x, y = surface.values
    drawn = go.Surface(
        x=x,
        y=y,
        z=surface.advantages,
        cmin=lowest,
        cmax=0,
        colorscale="Viridis",
        contours={"x": _grid(x), "y": _grid(y)},
        colorbar={"thickness": 12, "len": 0.8, "outlinewidth": 0},
        hovertemplate=_hover(components, "z"),
    )
    marks = [
        go.Scatter3d(x=mark.action[:1], y=mark.action[1:], z=[mark.advantage], **form)
        for mark, form in _marks(surface, 6, _hover(components, "z"))
    ]
    figure.add_traces([drawn, *marks], rows=1, cols=2)
    x_axis, y_axis, z_axis = (
        {"title": {"text": text, "font": {"size": 12}}, "tickfont": {"size": 11}, "nticks": 6}
        for text in (*(f"component {component}" for component in components), "advantage")
    )
    z_axis["range"] = [lowest, 0.05 * abs(lowest)]
    figure.update_scenes(xaxis=x_axis, yaxis=y_axis, zaxis=z_axis, camera=_VIEW, aspectmode="cube")


def _draw_curve(figure: go.Figure, surface: Surface, component: int, lowest: float) -> None:
    hover = _hover([component], "y")
    (x,) = surface.values
    drawn = curve(x, surface.advantages, "", BLUE, 2.6, mode="lines", hovertemplate=hover)
    marks = [
        go.Scatter(x=mark.action, y=[mark.advantage], cliponaxis=False, **form)
        for mark, form in _marks(surface, 12, hover)
    ]
    figure.add_traces([drawn, *marks], rows=1, cols=2)
    height = [1.1 * lowest, 0.15 * abs(lowest)]
    figure.update_xaxes(titled(AXIS, f"action, component {component}"), row=1, col=2)
    figure.update_yaxes(titled(AXIS, "advantage", range=height), row=1, col=2)


def _marks(surface: Surface, size: int, hover: str) -> list[tuple[Mark, dict[str, object]]]:
    """The marks, each with the form of its trace."""
    found = list[tuple[Mark, dict[str, object]]]()
    for mark, (colour, symbol, place) in zip(surface.marks, _MARKS, strict=False):
        edge = {"color": "white", "width": 2}
        marker = {"size": size, "color": colour, "symbol": symbol, "line": edge}
        words = {"name": mark.name, "text": [mark.name], "hovertemplate": f"<b>{mark.name}</b><br>{hover}"}
        found.append((mark, {**words, "mode": "markers+text", "textposition": place, "marker": marker}))
    return found


def _grid(values: Floats) -> dict[str, object]:
    """Ten lines on the surface."""
    low, high = float(values[0]), float(values[-1])
    white = "rgba(255, 255, 255, 0.35)"
    return {"show": True, "color": white, "start": low, "end": high, "size": (high - low) / 10}


def _hover(components: Sequence[int], height: str) -> str:
    axes = zip("xy", components, strict=False)
    values = (f"component {component}: %{{{axis}:.3g}}<br>" for axis, component in axes)
    return f"{''.join(values)}<b>advantage %{{{height}:.4g}}</b><extra></extra>"
