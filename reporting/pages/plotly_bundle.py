"""plotly.js in parts, vendored and packed: a page holds the smallest part that draws its figures."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import plotly.graph_objects as go

VERSION = "4.1.1"
"""The version that the package plotly ships whole, and whose figures it describes."""
FOLDER = Path(__file__).parents[1] / "data" / "plotly"


class Bundle(NamedTuple):
    """One part, as published under plotly.js-<name>-dist-min and packed by gzip."""

    name: str
    sha256: str  # of the packed file
    kinds: frozenset[str]  # of traces that it draws, as far as we draw them


BUNDLES = (
    Bundle(
        "cartesian",
        "8a7a75d40bde9906edca840974753676a1acef767338b45ace6606e6089f7469",
        frozenset({"scatter", "bar", "heatmap"}),
    ),
    Bundle(
        "gl3d",
        "8354b70bb4d382322b353ba9e1ce912490b161c2c81f4302a314bada8f87def6",
        frozenset({"scatter", "scatter3d", "surface"}),
    ),
)


def bundle_for(figures: Iterable[go.Figure]) -> Bundle:
    """The first that draws every trace of these figures. Raises ValueError where none does."""
    kinds = {str(trace.type) for figure in figures for trace in figure.data}
    for bundle in BUNDLES:
        if kinds <= bundle.kinds:
            return bundle
    raise ValueError(f"No part of plotly.js draws {', '.join(sorted(kinds))} in one page.")


@cache
def packed(bundle: Bundle) -> str:
    """The packed script as text of an html file. Raises ValueError where it is not the one published."""
    script = (FOLDER / f"plotly-{bundle.name}-{VERSION}.min.js.gz").read_bytes()
    if sha256(script).hexdigest() != bundle.sha256:
        raise ValueError(f"{FOLDER} holds another plotly-{bundle.name} than {VERSION}: check it out again.")
    return b64encode(script).decode()
