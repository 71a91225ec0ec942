"""One html file of figures that needs no network, and a picture of it by whatever browser is installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import NamedTuple

import plotly.graph_objects as go
import plotly.io as pio

from reporting.atomic import write_atomically

_PAGE = Path(__file__).parent / "data" / "page.html"
_CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["select", "lasso"]}


class Tile(NamedTuple):
    """One number at the top of a page."""

    name: str
    value: str
    note: str = ""


class Section(NamedTuple):
    """One figure with its heading."""

    figure: go.Figure  # its layout has a height in pixels; its width is the page's
    heading: str = ""
    note: str = ""
    wide: bool = False  # takes the whole width of the page, however wide that is


def write_page(
    path: Path, title: str, heading: str, note: str, tiles: Iterable[Tile], sections: Sequence[Section]
) -> None:
    """Writes the page whole or not at all; it holds the one copy of plotly.js that its figures need."""
    drawn = [_section(section, number) for number, section in enumerate(sections)]
    page = Template(_PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        heading=escape(heading),
        note=escape(note),
        tiles=_definition_list(tiles),
        sections="\n".join(drawn),
    )
    write_atomically(path, page.encode())


def _section(section: Section, number: int) -> str:
    figure: str = pio.to_html(
        section.figure,
        full_html=False,
        include_plotlyjs=number == 0,
        config=_CONFIG,
        default_height=f"{section.figure.layout.height}px",
        div_id=f"figure_{number}",
    )
    heading = f"<h2>{escape(section.heading)}<small>{escape(section.note)}</small></h2>"
    kind = "wide" if section.wide else "narrow"
    return f'<section class="{kind}">{heading if section.heading else ""}{figure}</section>'


def _definition_list(tiles: Iterable[Tile]) -> str:
    drawn = [
        f"<div><dt>{name}</dt><dd>{value} <small>{note}</small></dd></div>" for name, value, note in tiles
    ]
    return f"<dl>{''.join(drawn)}</dl>" if drawn else ""


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIMEOUT_S = 120.0


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
