"""A trial of a search: its parameters, where they come from, and the record of how it went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from args import Plain
from lab.records import read_whole
from lab.search.block import Search, Values, combinations
from lab.session import Session
from lab.spec import Experiment
from reporting.atomic import write_atomically

DONE = ("finished", "stopped early")
"""States after which a trial is not run again."""


def planned(search: Search) -> list[dict[str, Plain]]:
    """The parameters of every trial by number; none where they depend on results.

    More trials of a random search begin with the same ones.
    """
    if search.method == "optuna":
        return []
    return list(combinations(search)) or [_drawn(search, number) for number in range(search.count)]


def _drawn(search: Search, number: int) -> dict[str, Plain]:
    generator = np.random.default_rng([search.seed, number])
    return {name: _draw(values, generator) for name, values in search.flags.items()}


def _draw(values: Values, generator: np.random.Generator) -> Plain:
    if values.randint:
        return int(generator.integers(*values.randint, endpoint=True))
    if values.loguniform:
        low, high = values.loguniform
        drawn = np.exp(generator.uniform(*np.log(values.loguniform)))
        return float(np.clip(drawn, low, high))  # rounding may lead beyond them
    if values.uniform:
        return float(generator.uniform(*values.uniform))
    return values.choice[generator.integers(len(values.choice))]


@dataclass(frozen=True)
class Trial:
    """One trial and its place."""

    experiment: Experiment
    number: int
    parameters: Mapping[str, Plain]  # the flags that it changes
    folder: Path

    @property
    def name(self) -> str:
        """How sentences and folders call it."""
        return self.folder.name

    def sessions(self) -> list[Session]:
        """As every mode has them: seeds of their own, changed flags."""
        seed = self.experiment.args().seed
        return [
            Session(
                self.experiment,
                self.name,
                number,
                {**self.parameters, "seed": seed + number},
                self.folder / f"session_{number}",
            )
            for number in range(self.experiment.meta.sessions)
        ]


def trial_folder(folder: Path, number: int) -> Path:
    """Of a search's trial."""
    return folder / f"trial_{number}"


@dataclass(frozen=True)
class TrialRecord:
    """How a trial went so far: `trial.json`, written by the process that runs the search."""

    parameters: Mapping[str, Plain]
    state: str = "new"  # new | running | finished | stopped early | stopped | failed
    why: str = ""
    agent_steps: int = 0  # of its sessions, one after the other
    minutes: float = 0.0
    measures: Mapping[str, float] = field(default_factory=dict)  # at the last report; those that are defined
    reports: tuple[tuple[int, float], ...] = ()  # agent steps, and what is maximised
    commit: str = ""
    node: str = ""  # that it last ran on

    @property
    def is_done(self) -> bool:
        """Whether it need not run again."""
        return self.state in DONE


def read_trial(folder: Path) -> TrialRecord | None:
    """The record in a trial's folder; None where there is none. Raises UserError where it is damaged."""
    return read_whole(folder / "trial.json", TrialRecord, "and the trial begins as if it were new")


def read_trials(folder: Path) -> dict[int, TrialRecord]:
    """Those of a search by number."""
    places = {int(path.name.removeprefix("trial_")): path for path in folder.glob("trial_*") if path.is_dir()}
    records = {number: read_trial(path) for number, path in sorted(places.items())}
    return {number: record for number, record in records.items() if record}


def write_trial(folder: Path, record: TrialRecord) -> None:
    """Whole or not at all."""
    write_atomically(folder / "trial.json", json.dumps(asdict(record), indent=2).encode() + b"\n")
