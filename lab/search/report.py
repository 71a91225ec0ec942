"""What a search found: `experiment.csv`, `.html` and `.png` in its folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lab.search.block import Search, dash
from lab.search.trial import TrialRecord
from reporting.atomic import csv_bytes, write_atomically
from reporting.fitness import Fitness
from reporting.graph import plotly_panels
from reporting.page import Section, Tile, write_page
from reporting.trials import PANELS, TrialPoint, best_of, parameter_graphs, shown, write_parameters_png

MEASURES = ("score", *Fitness._fields, "fitness")
COLUMNS = ("mean_score_points", *MEASURES[1:])
"""How the table calls them."""


def report_search(folder: Path, search: Search, records: Mapping[int, TrialRecord]) -> None:
    """A row and a mark for each trial; the same after every one."""
    flags = [dash(name) for name in search.flags]
    header = ("trial", "state", *flags, "agent_steps", "minutes", *COLUMNS, "commit", "node", "why")
    rows = [_row(number, record, search) for number, record in records.items()]
    write_atomically(folder / "experiment.csv", csv_bytes([header, *rows]))
    points = [_point(number, record, search) for number, record in records.items()]
    title = f"{folder.parent.name}, {folder.name}"
    graphs = parameter_graphs(points, search.metric)
    write_parameters_png(folder / "experiment.png", title, graphs)
    note = f"{search.metric} of each trial at its end, or where it was stopped, against each parameter"
    figure = Section(plotly_panels(graphs, PANELS, 350, "No trial has a result yet."), wide=True)
    write_page(folder / "experiment.html", title, title, note, _tiles(points, search), [figure])


def _row(number: int, record: TrialRecord, search: Search) -> tuple[object, ...]:
    parameters = (record.parameters[name] for name in search.flags)
    measured = (record.measures.get(name, "") for name in MEASURES)
    size = record.agent_steps, round(record.minutes, 2)
    return (
        f"trial_{number}",
        record.state,
        *parameters,
        *size,
        *measured,
        record.commit,
        record.node,
        record.why,
    )


def _point(number: int, record: TrialRecord, search: Search) -> TrialPoint:
    parameters = {dash(name): record.parameters[name] for name in search.flags}
    value = record.measures.get(search.metric, float("nan"))
    return TrialPoint(f"trial_{number}", parameters, value, record.state)


def _tiles(points: list[TrialPoint], search: Search) -> list[Tile]:
    states = Counter(point.state for point in points)
    trials = Tile(
        "Trials", str(len(points)), ", ".join(f"{count} {state}" for state, count in states.items())
    )
    best = best_of(points)
    if best is None:
        return [trials]
    parameters = [Tile(f"Its {name}", shown(value)) for name, value in best.parameters.items()]
    return [trials, Tile(f"Best {search.metric}", f"{best.value:.4g}", best.name), *parameters]
