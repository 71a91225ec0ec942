"""A schedule: a JSON file {spec file: {experiment: mode}}, checked as a whole before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from args import UserError
from lab.modes import MODES
from lab.search.engine import check_search
from lab.spec import Experiment, find_experiment


class Task(NamedTuple):
    """One line of a schedule."""

    experiment: Experiment
    mode: str


def task_of(file: Path, name: str, mode: str) -> Task:
    """Raises UserError for an experiment or a mode that does not exist, or that lacks what it needs."""
    if mode not in MODES:
        raise UserError(f"There is no mode {mode}: choose one of {', '.join(MODES)}.")
    experiment = find_experiment(file, name)
    if mode == "search":
        check_search(experiment)
    return Task(experiment, mode)


def read_schedule(path: Path) -> list[Task]:
    """Spec files are named as seen from the present folder. Raises UserError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UserError(f"The schedule {path} cannot be read: {error}.") from error
    shape = isinstance(document, dict) and all(isinstance(part, dict) for part in document.values())
    if not shape or not document:
        raise UserError(f"The schedule {path} must be {{spec file: {{experiment: mode}}}}.")
    return [
        task_of(Path(file), str(name), str(mode))
        for file, part in document.items()
        for name, mode in part.items()
    ]
