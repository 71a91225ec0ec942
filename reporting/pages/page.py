"""One html file of figures that needs no network: its style, and a picture of it by a browser."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, TypeVar

import plotly.graph_objects as go

from reporting.atomic import write_atomically
from reporting.pages.plotly_bundle import VERSION, bundle_for, packed

Name = TypeVar("Name")

BLUE, GREEN, RED, PURPLE = "#1f5fbf", "#2e9e6b", "#d1603d", "#8a3fae"
COLOURS = ("#1f5fbf", "#d1603d", "#2e9e6b", "#8a3fae", "#c2981d", "#3aa6b9", "#b0446e", "#66758a")
"""Colours of things side by side, in their order."""
INK, MUTED, EDGE, GRID = "#1c2733", "#66758a", "#cfd8e1", "#e8edf2"
SHARES = [[0, "#f7f9fb"], [0.15, "#d3e0f3"], [0.4, "#7ea6dc"], [0.7, BLUE], [1, "#0d2a5c"]]
"""Colours from no share to the largest."""
FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

TITLE = {"size": 14}
AXIS = {"gridcolor": GRID, "zerolinecolor": EDGE, "linecolor": EDGE, "ticks": "outside", "automargin": True}
STEPS = {**AXIS, "rangemode": "tozero", "tickformat": "~s"}
"""A horizontal axis of agent steps."""
RULER = {
    "showspikes": True,
    "spikemode": "across",
    "spikethickness": 1,
    "spikedash": "dot",
    "spikecolor": MUTED,
}
MARGIN = {"l": 70, "r": 28, "t": 60, "b": 72}
"""Around the axes, in pixels: room for titles of axes, and for a legend above."""
STRIP_MARGIN = {"l": 70, "r": 20, "t": 34, "b": 56}
"""Margins in pixels around strips that lie one above the other."""
HOVER_LABEL = {"align": "left", "bgcolor": "white", "bordercolor": EDGE, "font": {"color": INK, "size": 13}}
LEGEND_ABOVE = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}


FEW_POINTS = 30
"""Most points of a curve that has a mark at each of them."""


def titled(axis: Mapping[str, object], text: str, **others: object) -> dict[str, object]:
    """The axis with a title."""
    return {**axis, "title": {"text": text, "font": TITLE}, **others}


def curve(x: Any, y: Any, name: str, colour: str, width: float, **form: object) -> go.Scatter:
    """A line, with marks where it has few points."""
    mode = "lines+markers" if len(x) <= FEW_POINTS else "lines"
    line = {"color": colour, "width": width}
    return go.Scatter(**{"x": x, "y": y, "name": name, "mode": mode, "line": line, **form})


def band(x: Any, low: Any, high: Any, colour: str, opacity: float, **form: object) -> list[go.Scatter]:
    """The area between two curves, in the colour #rrggbb: an unseen lower edge, and an upper edge that is
    filled down to it.
    """
    edge = {"x": x, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    fill = {"fill": "tonexty", "fillcolor": f"{colour}{round(255 * opacity):02x}"}
    return [go.Scatter(y=low, showlegend=False, **edge), go.Scatter(y=high, **fill, **edge, **form)]


def colours(names: Iterable[Name]) -> dict[Name, str]:
    """One for each name, in their order."""
    return {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(dict.fromkeys(names))}


def base_layout() -> dict[str, object]:
    """What all figures have in common."""
    return {
        "template": "none",
        "font": {"family": FONT, "size": 14, "color": INK},
        "hoverlabel": HOVER_LABEL,
    }


def reward_layout() -> dict[str, object]:
    """Layout of scores against steps: legend above, axis switch below, a ruler at the mouse."""
    return {
        **base_layout(),
        "height": 500,
        "margin": MARGIN,
        "hovermode": "x",
        "legend": {**LEGEND_ABOVE, "traceorder": "reversed"},
        "xaxis": titled({**STEPS, **RULER}, "agent steps"),
        "yaxis": titled(AXIS, "score", tickformat=",~r"),
    }


LEVEL_MARGIN, LETTER = 110, 8
"""Pixels at the right of a figure with levels, for their names, at least; and what a letter of them takes."""


def add_levels(figure: go.Figure, levels: Mapping[str, float]) -> go.Figure:
    """A dotted line at each height, and its name beside the axes, where it hides nothing."""
    for name, level in levels.items():
        place = {"x": 1, "xanchor": "left", "yanchor": "middle", "xshift": 6}
        words = {"text": name, "font": {"color": MUTED}, **place}
        figure.add_hline(level, line={"color": MUTED, "dash": "dot"}, annotation=words)
    room = max((LETTER * len(name) + 14 for name in levels), default=0)
    return figure.update_layout(margin={"r": max(LEVEL_MARGIN, room)}) if levels else figure


def empty_figure(sentence: str) -> go.Figure:
    """What stands in the place of a figure that has nothing to show yet."""
    hidden = {"visible": False}
    figure = go.Figure(layout={**base_layout(), "height": 350, "xaxis": hidden, "yaxis": hidden})
    middle = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
    return figure.add_annotation(text=sentence, font={"size": 18, "color": MUTED}, **middle)


_PAGE = Path(__file__).parents[1] / "data" / "page.html"
_CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["select", "lasso"]}


class Tile(NamedTuple):
    """One number at the top of a page."""

    name: str
    value: str
    note: str = ""


class Table(NamedTuple):
    """Rows of text under a header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Section(NamedTuple):
    """One figure or table with its heading."""

    shown: go.Figure | Table  # a figure's layout has a height in pixels; its width is the page's
    heading: str = ""
    note: str = ""
    wide: bool = False  # takes the whole width of the page, however wide that is


def write_page(
    path: Path, title: str, heading: str, note: str, tiles: Iterable[Tile], sections: Sequence[Section]
) -> None:
    """Writes the page whole or not at all; it holds the one copy of plotly.js that its figures need.

    Raises:
        OSError: the disk refused; an earlier page stays as it was.
    """
    figures = [section.shown for section in sections if isinstance(section.shown, go.Figure)]
    numbers = iter(range(len(figures)))
    page = Template(_PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        heading=escape(heading),
        note=escape(note),
        tiles=_definition_list(tiles),
        sections="\n".join(_section(section, numbers) for section in sections),
        figures=",\n".join(str(figure.to_json()) for figure in figures),
        config=json.dumps(_CONFIG),
        version=VERSION,
        plotly=packed(bundle_for(figures)) if figures else "",
    )
    write_atomically(path, page.encode())


def _section(section: Section, numbers: Iterator[int]) -> str:
    heading = f"<h2>{escape(section.heading)}<small>{escape(section.note)}</small></h2>"
    shown = _table(section.shown) if isinstance(section.shown, Table) else _place(section.shown, numbers)
    kind = "wide" if section.wide else "narrow"
    return f'<section class="{kind}">{heading if section.heading else ""}{shown}</section>'


def _place(figure: go.Figure, numbers: Iterator[int]) -> str:
    columns = ' class="columns"' if (figure.layout.xaxis.domain or (0, 1))[1] < 1 else ""
    return f'<div id="figure_{next(numbers)}"{columns} style="height:{figure.layout.height}px"></div>'


def _table(table: Table) -> str:
    header = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in table.rows)
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{header}</tr></thead><tbody>{lines}</tbody></table></div>'


def _definition_list(tiles: Iterable[Tile]) -> str:
    escaped = (map(escape, tile) for tile in tiles)
    drawn = [
        f"<div><dt>{name}</dt><dd>{value} <small>{note}</small></dd></div>" for name, value, note in escaped
    ]
    return f"<dl>{''.join(drawn)}</dl>" if drawn else ""


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIMEOUT_S = 120.0
DRAWING_MS = 20_000
"""Milliseconds, in the browser's own time, that a page gets to draw itself."""


class StillError(RuntimeError):
    """The browser made no picture; the message is one sentence."""


def find_browser() -> str | None:
    """Path of the first of `BROWSERS` that is installed."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def write_still(browser: str, page: Path, picture: Path, width: int, height: int) -> None:
    """Opens `page` in a headless browser and writes its first `height` pixels as a PNG.

    Raises:
        StillError: the browser could not do it.
    """
    with tempfile.TemporaryDirectory(prefix="still-") as folder:
        taken = Path(folder) / "still.png"
        command = [
            browser,
            "--headless=new",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # root has no sandbox
            "--enable-unsafe-swiftshader",  # 3-D without a graphics card
            "--hide-scrollbars",
            f"--virtual-time-budget={DRAWING_MS}",
            f"--user-data-dir={folder}/profile",
            f"--window-size={width},{height}",
            f"--screenshot={taken}",
            page.resolve().as_uri(),
        ]
        try:
            subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise StillError(f"{browser} could not take a picture of {page}: {error}.") from error
        if not taken.is_file():
            raise StillError(f"{browser} took no picture of {page}.")
        write_atomically(picture, taken.read_bytes())
