"""The commands of run_lab.py by their names; each takes the parsed words and returns an exit code.

`options.fits` looks at an experiment's environments, and raises UserError where its agent cannot play them,
or not for scores, which a benchmark needs.
`options.name_of` has the one name of a game.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from args import UserError, complain
from lab import folder, upkeep
from lab.benchmark.command import Benchmark, chosen
from lab.files import RUNS
from lab.modes import Task, enjoy, read_schedule, sessions_of, task_of
from lab.report import make_report
from lab.runner import Runner
from lab.search.engine import search, seed_warning
from lab.spec import Experiment, read_experiments, tried_experiments
from supervision.process import Stop, agrees, say

Fits = Callable[..., None]
WATCH_EVERY_S = 10.0
"""Seconds between two looks for finished results to copy (our choice)."""


def check(options: argparse.Namespace) -> int:
    """Say of every experiment that it could start, or why it could not: exit code 2."""
    ready = [_could_start(found, options.fits) for path in options.files for found in _found(path)]
    return 0 if all(ready) else 2


def _found(path: Path) -> Iterable[Experiment | UserError]:
    try:
        return tried_experiments(path).values()
    except UserError as error:
        return [error]


def _could_start(found: Experiment | UserError, fits: Fits) -> bool:
    try:
        if isinstance(found, UserError):
            raise found
        for each in (found, *found.samples()):
            fits(each)
    except UserError as error:
        complain(error)
        return False
    say(f"{found.where}: ready.")
    if warning := seed_warning(found):
        say(warning)
    return True


def run(options: argparse.Namespace) -> int:
    """One experiment."""
    return _run_tasks(options, [task_of(options.file, options.name, options.mode)])


def schedule(options: argparse.Namespace) -> int:
    """Several, one after the other."""
    return _run_tasks(options, read_schedule(options.schedule))


def _run_tasks(options: argparse.Namespace, tasks: Sequence[Task]) -> int:
    """Exit code: 0 all done or asked to stop, 1 something failed."""
    copy = _copier(options)
    if options.detach:
        return _detach(options, options.results)
    for task in tasks:
        options.fits(task.experiment)
        _check_sessions(task, options.results)
    only_played = all(task.mode == "enjoy" for task in tasks)  # which may be while a lab trains
    with contextlib.nullcontext() if only_played else folder.only_lab(options.results):
        stop = Stop().on_signals()
        done = [stop() or _do(task, options, stop, copy) or stop() for task in tasks]
    return 0 if all(done) else 1


def _check_sessions(task: Task, root: Path) -> None:
    """Raise UserError where the folders hold sessions of another spec."""
    if task.mode not in ("enjoy", "search"):
        for session in sessions_of(*task, root):
            session.check()


def _detach(options: argparse.Namespace, root: Path) -> int:
    say(folder.detach([word for word in options.argv if word != "--detach"], root))
    return 0


def _do(task: Task, options: argparse.Namespace, stop: Stop, copy: Callable[[], None]) -> bool:
    """Whether it came to its end."""
    experiment, mode = task
    if mode == "enjoy":
        return enjoy(experiment, options.results) == 0
    if mode == "search":
        return search(experiment, options.results, options.ray_address, stop, say, copy)
    sessions = sessions_of(experiment, mode, options.results)
    return Runner(stop, say, copy).run(sessions, verbose=mode == "dev")


def _copier(options: argparse.Namespace) -> Callable[[], None]:
    """Copies results, if that was asked for; a disk that refuses stops no run.

    Raises UserError at once where copies would become results, or results copies.
    """
    if not options.sync_dir:
        return lambda: None
    upkeep.check_target(options.results, options.sync_dir)

    def copy() -> None:
        try:
            upkeep.sync(options.results, options.sync_dir)
        except UserError as error:
            say(str(error))

    return copy


def benchmark(options: argparse.Namespace) -> int:
    """All experiments of a file, and one table of them."""
    options.results = options.results or Path("results") / options.file.stem
    copy = _copier(options)
    experiments = [*read_experiments(options.file).values()]
    root, runner = options.results / RUNS, Runner(Stop().on_signals(), say)
    whole = Benchmark(experiments, options.results, runner, say, copy)
    whole.check()
    if options.table:
        return 0 if whole.write() else 1  # also while another lab plays
    if options.detach:
        return _detach(options, root)
    played = chosen(experiments, options.only, options.all)
    for experiment in played:
        options.fits(experiment, scored=True)
    with folder.only_lab(root):
        return 0 if whole.play(played, options.side_by_side, options.sessions) or runner.stopped else 1


def report(options: argparse.Namespace) -> int:
    """SABER's report of evaluations."""
    make_report(options.paths, options.results, options.compare, say, options.name_of)
    return 0


def watch(options: argparse.Namespace) -> int:
    """Copy finished results until Ctrl-C."""
    upkeep.check_target(options.results, options.sync_dir)
    stop = Stop().on_signals()
    while True:
        if copied := upkeep.sync(options.results, options.sync_dir):
            say(f"{copied} files copied to {options.sync_dir}.")
        if stop.wait(WATCH_EVERY_S):
            return 0


def _lab_of(results: Path) -> Path:
    """The folder of the sessions themselves: a benchmark keeps them in one beside its table."""
    is_benchmark = (results / RUNS).is_dir() and folder.lab_process(results) is None
    return results / RUNS if is_benchmark else results


def attach(options: argparse.Namespace) -> int:
    """Show a detached lab; Ctrl-C leaves it running."""
    folder.attach(_lab_of(options.results), say, Stop().on_signals())
    return 0


def stop(options: argparse.Namespace) -> int:
    """End the lab and its sessions, which save first."""
    say(f"{folder.stop_lab(_lab_of(options.results))} processes were ended.")
    return 0


def reset(options: argparse.Namespace) -> int:
    """Remove all results, or one experiment's."""
    root = _lab_of(options.results.resolve())
    named = upkeep.results_of(root, options.name) if options.name else upkeep.all_results(root)
    return _remove(named, root, options)


def clear(options: argparse.Namespace) -> int:
    """Remove sessions that failed or were stopped."""
    root = _lab_of(options.results)
    return _remove(upkeep.unfinished(root), root, options)


def _remove(paths: list[Path], root: Path, options: argparse.Namespace) -> int:
    if not paths:
        say("There is nothing to remove.")
        return 0
    say("\n".join(["This removes:", *map(str, paths)]))
    if not options.yes and not agrees("Go on?"):
        say("Nothing was removed.")
        return 1
    upkeep.remove(paths, root)
    say("Removed.")
    return 0
