"""Mode search: an experiment's trials, from where an earlier start left them."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from args import UserError, read_mapping
from lab.house import end_sessions
from lab.search.block import Search, dash
from lab.search.ledger import Ledger
from lab.search.report import report_search
from lab.spec import Experiment
from reporting.atomic import write_atomically
from supervision.process import Stop

HOW = "`EXTRAS=search bash scripts/setup.sh`, or `pip install -r requirements-search.txt`"
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray sends nothing anywhere
    "RAY_AIR_NEW_OUTPUT": "0",  # no tables of its own between our lines
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C is ours
}
OWN = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # or 127.0.0.1 is turned into the outer address
    "RAY_worker_niceness": "0",  # not 15: a search's sessions have the priority of any other's
}
"""For a Ray that is started here."""
FREE = ("trials", "concurrent", "cpus", "gpus")
"""What may change from one start of a search to the next."""
REPORTS = 20
"""Of a trial, at equal numbers of agent steps; with ASHA there is one at each multiple of its grace steps."""


def check_search(experiment: Experiment) -> None:
    """Raises UserError where mode search could not begin."""
    if experiment.search is None:
        raise UserError(f"{experiment.where}: mode search needs a block `search` (docs/lab.md).")
    wanted = ("ray", "optuna") if experiment.search.method == "optuna" else ("ray",)
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"{experiment.where}: mode search needs {missing[0]}, which is not installed: {HOW}.")


def seed_warning(experiment: Experiment) -> str:
    """That ASHA stops trials of which it has seen one seed; "" where it does not."""
    asha = experiment.search and experiment.search.asha
    args, sessions = experiment.args(), experiment.meta.sessions
    if not asha or sessions == 1 or asha.grace_steps > args.T_max:
        return ""
    return (
        f"{experiment.where}: at search.asha.grace-steps {asha.grace_steps} a trial is judged by its first"
        f" seed ({args.seed}) alone, since its {sessions} sessions are played one after the other: choose"
        f" more than T-max {args.T_max}, or one session."
    )


def search(
    experiment: Experiment,
    root: Path,
    address: str | None,
    stop: Stop,
    say: Callable[[str], None],
    after_trial: Callable[[], object],
) -> bool:
    """Play the trials that are not done yet; whether all are done then.

    Args:
      address: of a Ray cluster whose machines see the same folders; None for this machine alone.
      after_trial: called when a trial has ended and the search's table and graphs are written anew.

    Raises UserError.
    """
    space = experiment.search
    if space is None:
        raise ValueError("check_search comes first")
    folder = (root / experiment.name / "search").resolve()
    _keep_spec(experiment, folder)
    if warning := seed_warning(experiment):
        say(warning)

    def report() -> None:
        try:
            report_search(folder, space, ledger.records)
        except (ValueError, OSError) as error:
            say(f"{folder}: its results cannot be drawn: {error}")
        after_trial()

    ledger = Ledger(experiment.name, folder, space.metric, say, report)
    numbers = [number for number in range(space.count) if number not in ledger.done]
    if len(numbers) < space.count:
        say(f"{experiment.name}: {space.count - len(numbers)} of {space.count} trials were done before.")
    if numbers:
        _play(experiment, space, folder, numbers, ledger, address, stop)
    report()
    return all(number in ledger.done for number in range(space.count))


def _play(
    experiment: Experiment,
    space: Search,
    folder: Path,
    numbers: list[int],
    ledger: Ledger,
    address: str | None,
    stop: Stop,
) -> None:
    for name, value in (QUIET if address else QUIET | OWN).items():
        os.environ.setdefault(name, value)
    try:
        from lab.search import engine, worker  # here, since it takes seconds to load, and is an extra
    except ImportError as error:
        raise UserError(f"Mode search needs an extra that is not whole here ({error}): {HOW}.") from error
    total = experiment.args().T_max * experiment.meta.sessions
    every = space.asha.grace_steps if space.asha else max(total // REPORTS, 1)
    job = worker.Job(experiment, folder, Path.cwd(), space.metric, total, every)
    with engine.cluster(address, stop):
        engine.check_room(space, experiment.where)
        engine.run_trials(job, space, numbers, ledger, stop)
    end_sessions(folder.glob("*/session_*"))


def _keep_spec(experiment: Experiment, folder: Path) -> None:
    """Write what is searched. Raises UserError where the folder holds another search."""
    path = folder / "experiment.yaml"
    document = _document(experiment)
    if path.exists() and _bound(read_mapping(path)) != _bound(document):
        raise UserError(
            f"{folder} holds a search of another spec: move it away, or remove it with"
            f" `python run_lab.py reset {experiment.name}`."
        )
    text = f"# {experiment.name}, of {experiment.file.name}\n" + yaml.safe_dump(document, sort_keys=False)
    write_atomically(path, text.encode())


def _document(experiment: Experiment) -> dict[str, Any]:
    """The experiment as a spec file of its own."""
    flags = {dash(name): value for name, value in experiment.flags.items()}
    blocks = {"meta": experiment.meta, "search": experiment.search}
    dumped = {
        name: block.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for name, block in blocks.items()
        if block
    }
    return {**flags, **dumped}


def _bound(document: dict[str, Any]) -> dict[str, Any]:
    """All that must stay as it was."""
    space = {key: value for key, value in dict(document.get("search") or {}).items() if key not in FREE}
    return {**document, "search": space}
