"""The lab: experiments of spec files, many runs one after the other.

    python run_lab.py check specs/lab/classic.yaml
    python run_lab.py run specs/lab/classic.yaml dqn_cartpole train
    python run_lab.py schedule specs/experiments.json --detach

docs/lab.md explains modes, results and the other commands.
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import exit_quietly_on_interrupt

    exit_quietly_on_interrupt()

import argparse
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from args import UserError, complain, fail
from lab.background import attach, detach
from lab.benchmark import Benchmark, chosen
from lab.enjoy import enjoy
from lab.house import DEFAULT, only_lab, stop_lab
from lab.modes import sessions_of
from lab.names import RUNS
from lab.removal import all_results, remove, results_of, unfinished
from lab.runner import Runner
from lab.schedule import Task, read_schedule, task_of
from lab.search.engine import search, seed_warning
from lab.spec import Experiment, read_experiments, tried_experiments
from lab.sync import check_target, sync
from supervision.process import INTERRUPTED, Stop, raise_on_interrupt

Work = Callable[[argparse.Namespace], int]
WATCH_EVERY_S = 10.0


def check(options: argparse.Namespace) -> int:
    """Say of every experiment that it could start, or why it could not: exit code 2."""
    well = [_could_start(found) for path in options.files for found in _found(path)]
    return 0 if all(well) else 2


def _found(path: Path) -> Iterable[Experiment | UserError]:
    try:
        return tried_experiments(path).values()
    except UserError as error:
        return [error]


def _could_start(found: Experiment | UserError) -> bool:
    try:
        if isinstance(found, UserError):
            raise found
        fits(found)
    except UserError as error:
        complain(error)
        return False
    say(f"{found.where}: ready.")
    if warning := seed_warning(found):
        say(warning)
    return True


def fits(experiment: Experiment) -> None:
    """Look at the environments, and see whether the agent can play them. Raises UserError."""
    from wiring import canonical, check_store, setting_of  # here, since it takes seconds to load PyTorch
    from wiring.endings import USER_ERRORS

    for game in experiment.meta.games or (None,):
        args = experiment.args(**({"game": game} if game else {}))
        try:
            check_store(setting_of(canonical(args)).args)
        except USER_ERRORS as error:
            raise UserError(f"{experiment.where}: {error}") from error


def run(options: argparse.Namespace) -> int:
    """One experiment."""
    return _in_its_place(options, [task_of(options.file, options.name, options.mode)])


def schedule(options: argparse.Namespace) -> int:
    """Several, one after the other."""
    return _in_its_place(options, read_schedule(options.schedule))


def _in_its_place(options: argparse.Namespace, tasks: Sequence[Task]) -> int:
    _check_copies(options)
    if options.detach:
        return _detached(options, options.results)
    for task in tasks:
        fits(task.experiment)
    if all(task.mode == "enjoy" for task in tasks):
        return _work(options, tasks)  # also while a lab trains
    with only_lab(options.results):
        return _work(options, tasks)


def _detached(options: argparse.Namespace, root: Path) -> int:
    words = [word for word in options.argv if word != "--detach"]
    say(detach(words, root))
    return 0


def _work(options: argparse.Namespace, tasks: Sequence[Task]) -> int:
    """Exit code: 0 all done, 1 something failed or was stopped."""
    stop = Stop().on_signals()
    runner = Runner(stop, say, _copier(options))
    well = True
    for experiment, mode in tasks:
        if stop():
            return 1
        if mode == "enjoy":
            well = enjoy(experiment, options.results) == 0 and well
        elif mode == "search":
            where = options.results, options.ray_address
            well = search(experiment, *where, stop, say, _copier(options)) and well
        else:
            well = runner.run(sessions_of(experiment, mode, options.results), verbose=mode == "dev") and well
    return 0 if well else 1


def _copier(options: argparse.Namespace) -> Callable[[], object]:
    """What runs go on without, should the disk refuse it."""

    def copy() -> None:
        try:
            sync(options.results, options.sync_dir)
        except UserError as error:
            say(str(error))

    return copy if options.sync_dir else lambda: None


def _check_copies(options: argparse.Namespace) -> None:
    if options.sync_dir:
        check_target(options.results, options.sync_dir)


def benchmark(options: argparse.Namespace) -> int:
    """All experiments of a file, and one table of them."""
    _check_copies(options)
    experiments = [*read_experiments(options.file).values()]
    root, runner = options.results / RUNS, Runner(Stop().on_signals(), say)
    whole = Benchmark(experiments, options.results, runner, say, _copier(options))
    if options.table:
        whole.write()  # also while another lab plays
        return 0
    if options.detach:
        return _detached(options, root)
    played = chosen(experiments, options.only, options.all)
    for experiment in played:
        fits(experiment)
    with only_lab(root):
        return 0 if whole.play(played, options.side_by_side) else 1


def watch(options: argparse.Namespace) -> int:
    """Copy finished results until Ctrl-C."""
    _check_copies(options)
    stop = Stop().on_signals()
    while True:
        if copied := sync(options.results, options.sync_dir):
            say(f"{copied} files copied to {options.sync_dir}.")
        if stop.wait(WATCH_EVERY_S):
            return 0


def look(options: argparse.Namespace) -> int:
    """`attach`: Ctrl-C leaves the lab running."""
    attach(options.results, say, Stop().on_signals())
    return 0


def stop_all(options: argparse.Namespace) -> int:
    """`stop`: sessions save before they end."""
    say(f"{stop_lab(options.results)} processes were ended.")
    return 0


def reset(options: argparse.Namespace) -> int:
    """Remove all results, or one experiment's."""
    root = options.results.resolve()
    paths = results_of(root, options.name) if options.name else all_results(root)
    return _remove(paths, options)


def clear(options: argparse.Namespace) -> int:
    """Remove sessions that failed or were stopped."""
    return _remove(unfinished(options.results), options)


def _remove(paths: list[Path], options: argparse.Namespace) -> int:
    if not paths:
        say("There is nothing to remove.")
        return 0
    say("\n".join(["This removes:", *map(str, paths)]))
    if not options.yes and not _agreed():
        say("Nothing was removed.")
        return 1
    remove(paths, options.results)
    say("Removed.")
    return 0


def _agreed() -> bool:
    """Whether the user says so; where nobody can answer, no."""
    try:
        return input("Go on? [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        say("")
        return False


def say(line: str) -> None:
    """One line for the user, at once."""
    print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    width = shutil.get_terminal_size().columns
    parser = argparse.ArgumentParser(
        description="The lab: experiments of spec files, many runs one after the other.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30, width=width),
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, work: Work, sentence: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=sentence, description=sentence)
        added.set_defaults(work=work)
        if name != "check":
            added.add_argument("--results", type=Path, default=DEFAULT, help="folder of the lab")
        return added

    checking = command("check", check, "say whether every experiment of the spec files could start")
    checking.add_argument("files", nargs="+", type=Path, metavar="FILE")
    running = command("run", run, "run one experiment: dev, train, enjoy, benchmark or search")
    running.add_argument("file", type=Path, metavar="SPEC_FILE")
    running.add_argument("name", metavar="SPEC_NAME")
    running.add_argument("mode", metavar="MODE")
    scheduling = command("schedule", schedule, "run what a JSON file names: {spec file: {experiment: mode}}")
    scheduling.add_argument("schedule", type=Path, metavar="FILE")
    for each in (running, scheduling):
        each.add_argument(
            "--ray-address", help="mode search: an existing Ray cluster, as 10.0.0.1:6379 or auto"
        )
    benching = command(
        "benchmark", benchmark, "run every experiment of a file; what is done stays; one table"
    )
    benching.add_argument("file", type=Path, metavar="SPEC_FILE")
    benching.add_argument("--only", nargs="+", default=[], metavar="SPEC_NAME", help="these alone")
    benching.add_argument("--all", action="store_true", help="also what the file marks as extra")
    benching.add_argument("--table", action="store_true", help="run nothing: write table and graphs anew")
    benching.add_argument("--side-by-side", type=int, default=2, metavar="N", help="sessions at a time (2)")
    benching.set_defaults(results=Path("results/benchmark"))
    for each in (running, scheduling, benching):
        each.add_argument("--detach", action="store_true", help="outlive this terminal")
        each.add_argument("--sync-dir", type=Path, help="copy finished results there")
    watching = command("watch", watch, "copy finished results as they come, until Ctrl-C")
    watching.add_argument("--sync-dir", type=Path, required=True, help="where to")
    command("attach", look, "show a detached lab; Ctrl-C leaves it running")
    command("stop", stop_all, "end the lab and its sessions, which save")
    resetting = command("reset", reset, "remove all results, or one experiment's, after asking")
    resetting.add_argument("name", nargs="?", metavar="SPEC_NAME")
    clearing = command("clear", clear, "remove sessions that failed or were stopped, after asking")
    for each in (resetting, clearing):
        each.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(words)
    options.argv = words
    try:
        return int(options.work(options))
    except UserError as error:
        fail(error)
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    raise_on_interrupt()
    sys.exit(main())
