"""Owner of the records of a search's trials while it runs; its lines for the user, its table and graphs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from args import Plain
from lab.files import dash
from lab.runner import Say
from lab.search.graphs import PANELS, TrialPoint, best_of, parameter_graphs, shown, write_parameters_png
from lab.search.space import Search
from lab.search.trial import Progress, TrialRecord, read_trials, trial_folder, write_trial
from lab.session import known_record
from reporting.atomic import write_csv
from reporting.measures.fitness import Fitness
from reporting.pages.graph import plotly_panels
from reporting.pages.page import Section, Tile, write_page

LINE_EVERY_S = 10.0
"""Seconds between two lines on a trial's result (our choice)."""
MEASURES = ("score", *Fitness._fields, "fitness")
COLUMNS = ("mean_score_points", *MEASURES[1:])
"""Names of MEASURES in the table."""


class Ledger:
    """Every trial by number, on disk as here."""

    def __init__(
        self, name: str, folder: Path, search: Search, say: Say, after_trial: Callable[[], object]
    ) -> None:
        """`name`: of the experiment; `after_trial`: called when a trial has ended, is on record and drawn."""
        self._name, self._folder, self._search, self._metric = name, folder, search, search.metric
        self._say, self._after_trial = say, after_trial
        self._printed: dict[int, float] = {}  # when a line about it was last printed
        self.records = read_trials(folder)

    @property
    def done(self) -> dict[int, TrialRecord]:
        """The trials that need not run again."""
        return {number: record for number, record in self.records.items() if record.is_done}

    def begin(self, number: int, parameters: Mapping[str, Plain], node: str = "") -> None:
        """A trial starts or resumes."""
        before = self.records.get(number) or TrialRecord(parameters)
        self._write(number, replace(before, state="running", why="", node=node or before.node))
        self._printed[number] = time.monotonic()
        flags = ", ".join(f"{dash(name)} {shown(value)}" for name, value in parameters.items())
        self._say(f"{self._name} trial_{number}: {flags}")

    def report(self, number: int, progress: Progress) -> bool:
        """Record how far it is; False where that was known, as after a stop or for a heartbeat."""
        record = self.records[number]
        if progress.steps <= record.agent_steps:
            return False
        value = progress.measures.get(self._metric)
        reports = record.reports if value is None else (*record.reports, (progress.steps, value))
        record = replace(record, agent_steps=progress.steps, measures=progress.measures, reports=reports)
        self._write(number, replace(record, minutes=progress.minutes, commit=progress.commit))
        if time.monotonic() - self._printed[number] > LINE_EVERY_S:
            self._printed[number] = time.monotonic()
            self._say(f"{self._name} trial_{number}: {progress.steps:,} steps, {self._result(number)}")
        return True

    def end(self, number: int, state: str) -> None:
        """It runs no more; where it failed, its sessions' records say why, if they know."""
        why = self._why_failed(number) if state == "failed" else ""
        self._write(number, replace(self.records[number], state=state, why=why))
        outcome = f"{state} ({why})" if why else f"{state}, {self._result(number)}"
        self._say(f"{self._name} trial_{number}: {outcome}. {len(self.done)} done{self._best()}")
        self.draw()

    def draw(self) -> None:
        """Write table and graphs anew."""
        try:
            report_search(self._folder, self._search, self.records)
        except (ValueError, OSError) as error:
            self._say(f"{self._folder}: its results cannot be drawn: {error}")
        self._after_trial()

    def _why_failed(self, number: int) -> str:
        sessions = sorted(trial_folder(self._folder, number).glob("session_*"))
        reasons = [record.why for record in map(known_record, sessions) if record.why]
        return reasons[0].rstrip(".") if reasons else "its process was lost"

    def _write(self, number: int, record: TrialRecord) -> None:
        self.records[number] = record
        write_trial(trial_folder(self._folder, number), record)

    def _result(self, number: int) -> str:
        value = self.records[number].measures.get(self._metric)
        return f"no {self._metric} yet" if value is None else f"{self._metric} {value:.4g}"

    def _best(self) -> str:
        best = best_of([_point(number, record, self._search) for number, record in self.done.items()])
        return "." if best is None else f", best: {best.name} with {best.value:.4g}."


def report_search(folder: Path, search: Search, records: Mapping[int, TrialRecord]) -> None:
    """`experiment.csv`, `.html` and `.png`: a row and a mark for each trial; the same after every one."""
    flags = [dash(name) for name in search.flags]
    header = ("trial", "state", *flags, "agent_steps", "minutes", *COLUMNS, "commit", "node", "why")
    rows = [_row(number, record, search) for number, record in records.items()]
    write_csv(folder / "experiment.csv", [header, *rows])
    points = [_point(number, record, search) for number, record in records.items()]
    graphs = parameter_graphs(points, search.metric)
    title = f"{folder.parent.name}, {folder.name}"
    write_parameters_png(folder / "experiment.png", title, graphs)
    note = f"{search.metric} of each trial at its end, or where it was stopped, against each parameter"
    figure = Section(plotly_panels(graphs, PANELS, 350, "No trial has a result yet."), wide=True)
    write_page(folder / "experiment.html", title, title, note, _tiles(points, search), [figure])


def _row(number: int, record: TrialRecord, search: Search) -> list[object]:
    flags = [record.parameters[name] for name in search.flags]
    measured = [record.measures.get(name, "") for name in MEASURES]
    size = record.agent_steps, round(record.minutes, 2)
    where = record.commit, record.node, record.why
    return [f"trial_{number}", record.state, *flags, *size, *measured, *where]


def _point(number: int, record: TrialRecord, search: Search) -> TrialPoint:
    parameters = {dash(name): record.parameters[name] for name in search.flags}
    value = record.measures.get(search.metric, float("nan"))
    return TrialPoint(f"trial_{number}", parameters, value, record.state)


def _tiles(points: list[TrialPoint], search: Search) -> list[Tile]:
    states = Counter(point.state for point in points)
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    trials = Tile("Trials", str(len(points)), counts)
    best = best_of(points)
    if best is None:
        return [trials]
    flags = [Tile(f"Its {name}", shown(value)) for name, value in best.parameters.items()]
    return [trials, Tile(f"Best {search.metric}", f"{best.value:.4g}", best.name), *flags]
