"""Owner of the records of a search's trials while it runs, and of what is said about them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from args import Plain
from lab.search.block import dash
from lab.search.trial import TrialRecord, read_trials, trial_folder, write_trial
from lab.session import known_record
from reporting.trials import shown

TELL_EVERY_S = 10.0


class Ledger:
    """Every trial by number, on disk as here."""

    def __init__(
        self,
        name: str,
        folder: Path,
        metric: str,
        say: Callable[[str], None],
        after_trial: Callable[[], None],
    ) -> None:
        """`name`: of the experiment; `after_trial`: called when a trial has ended and is on record."""
        self._name, self._folder, self._metric = name, folder, metric
        self._say, self._after_trial = say, after_trial
        self._told: dict[int, float] = {}  # when a line about it was last printed
        self.records = read_trials(folder)

    @property
    def done(self) -> dict[int, TrialRecord]:
        """Those that need not run again."""
        return {number: record for number, record in self.records.items() if record.is_done}

    @property
    def running(self) -> list[int]:
        """Numbers of those that run."""
        return [number for number, record in self.records.items() if record.state == "running"]

    def begin(self, number: int, parameters: Mapping[str, Plain]) -> None:
        """A trial starts, or goes on."""
        before = self.records.get(number) or TrialRecord(parameters)
        self._write(number, replace(before, state="running", why=""))
        self._told[number] = time.monotonic()
        words = ", ".join(f"{dash(name)} {shown(value)}" for name, value in parameters.items())
        self._say(f"{self._name} trial_{number}: {words}")

    def report(
        self, number: int, steps: int, measures: Mapping[str, float], minutes: float, commit: str, node: str
    ) -> None:
        """Where it stands. A report at steps that were reported before, as after a stop, changes nothing."""
        record = self.records[number]
        if steps <= record.agent_steps:
            return
        value = measures.get(self._metric)
        reports = record.reports if value is None else (*record.reports, (steps, value))
        record = replace(record, agent_steps=steps, measures=dict(measures), reports=reports)
        self._write(number, replace(record, minutes=minutes, commit=commit, node=node))
        if time.monotonic() - self._told[number] > TELL_EVERY_S:
            self._told[number] = time.monotonic()
            self._say(f"{self._name} trial_{number}: {steps:,} steps, {self._result(number)}")

    def end(self, number: int, state: str, why: str = "") -> None:
        """It runs no more."""
        self._write(number, replace(self.records[number], state=state, why=why))
        words = f"{state} ({why})" if why else f"{state}, {self._result(number)}"
        self._say(f"{self._name} trial_{number}: {words}. {len(self.done)} done{self._best()}")
        self._after_trial()

    def fail(self, number: int) -> None:
        """It runs no more, and its sessions' records say why, if they know."""
        sessions = sorted(trial_folder(self._folder, number).glob("session_*"))
        reasons = [record.why for record in map(known_record, sessions) if record.why]
        self.end(number, "failed", reasons[0].rstrip(".") if reasons else "its process was lost")

    def end_all(self, state: str) -> None:
        """Those that still run, as the search ends."""
        for number in self.running:
            self.end(number, state)

    def _write(self, number: int, record: TrialRecord) -> None:
        self.records[number] = record
        write_trial(trial_folder(self._folder, number), record)

    def _result(self, number: int) -> str:
        value = self.records[number].measures.get(self._metric)
        return f"no {self._metric} yet" if value is None else f"{self._metric} {value:.4g}"

    def _best(self) -> str:
        values = {n: r.measures[self._metric] for n, r in self.done.items() if self._metric in r.measures}
        best = max(values, key=values.__getitem__, default=None)
        return "." if best is None else f", best: trial_{best} with {values[best]:.4g}."
