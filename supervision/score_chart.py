"""Scores over time as a small picture of characters, between the lines of random play and of the goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BARS = " ▁▂▃▄▅▆▇█"
EIGHTHS = len(BARS) - 1
HEIGHT = 4
"""Height of the chart in rows of text."""
LINE = "┄"


def score_chart(
    scores: Sequence[tuple[float, float]], levels: Mapping[str, float], width: int
) -> list[tuple[str, str]]:
    """A label and a row of `width` characters, from top to bottom.

    Args:
        scores: steps and mean scores, in the order of steps.
        levels: drawn as lines and named in the label of their row.
    """
    columns = _columns(scores, width)
    known = [score for score in columns if score is not None]
    values = [*known, *levels.values()]
    if not values:
        return []
    low, high = min(values), max(values)
    lines = {_row(level, low, high): f"{name} {short(level)}" for name, level in levels.items()}
    labels = {_row(end, low, high): short(end) for end in (low, high)} | lines
    eighths = [None if score is None else _eighths(score, low, high) for score in columns]
    rows = []
    for row in reversed(range(HEIGHT)):
        line = LINE if row in lines else " "
        cells = (line if each is None else BARS[_of_row(each, row)] for each in eighths)
        text = "".join(line if cell == " " else cell for cell in cells)
        rows.append((labels.get(row, ""), text))
    return rows


def short(score: float) -> str:
    """A score for the eye: 475, -1,117, 0.68."""
    return f"{score:,.0f}" if abs(score) >= 100 or score == int(score) else f"{score:.3g}"


def _columns(scores: Sequence[tuple[float, float]], width: int) -> list[float | None]:
    """The last score in each share of the steps so far; one without any keeps the one before."""
    columns: list[float | None] = [None] * width
    if not scores:
        return columns
    first, last = scores[0][0], scores[-1][0]
    for steps, score in scores:
        share = (steps - first) / (last - first) if last > first else 0.0
        columns[min(int(share * width), width - 1)] = score
    if len(scores) < width:  # a short history begins at the left, a column each
        return [score for _, score in scores] + [None] * (width - len(scores))
    for place in range(1, width):
        if columns[place] is None:
            columns[place] = columns[place - 1]
    return columns


def _eighths(score: float, low: float, high: float) -> int:
    """Of a row; at least one, so that the lowest score is seen."""
    share = (score - low) / (high - low) if high > low else 0.5
    return max(round(share * HEIGHT * EIGHTHS), 1)


def _row(score: float, low: float, high: float) -> int:
    return min((_eighths(score, low, high) - 1) // EIGHTHS, HEIGHT - 1)


def _of_row(eighths: int, row: int) -> int:
    return min(max(eighths - row * EIGHTHS, 0), EIGHTHS)
