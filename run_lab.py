"""The lab: experiments of spec files, many runs one after the other.

    python run_lab.py check specs/lab/classic.yaml
    python run_lab.py run specs/lab/classic.yaml dqn_cartpole train
    python run_lab.py schedule specs/experiments.json --detach

docs/lab.md explains modes, results and the other commands.
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import begin_program

    begin_program()

import argparse
import contextlib
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from args import UserError, fail
from lab.files import DEFAULT
from supervision.process import INTERRUPTED, at_least_one, raise_on_interrupt

if TYPE_CHECKING:
    from args import Args
    from lab.spec import Experiment

Command = Callable[[str, str], argparse.ArgumentParser]


def fits(experiment: Experiment, scored: bool = False) -> None:
    """Look at the environments, and see whether the agent can play them; where `scored`, for scores.

    Raises UserError.
    """
    from wiring.checks import check_agent_fits, check_divided, check_serial
    from wiring.code import canonical, check_games
    from wiring.endings import USER_ERRORS
    from wiring.setting import setting_of_run
    from wiring.sources import check_length, check_store
    from wiring.starting.run_plan import check_parts

    for game in experiment.meta.games or (None,):
        args = experiment.args(**({"game": game} if game else {}))
        named = args.games
        try:
            args = canonical(args)
            _check_standards(named, args.games)
            if scored:
                _check_scores(args)
            setting = setting_of_run(args)
            check_games(args)
            check_parts(args)
            check_divided(args)
            check_serial(args)
            check_agent_fits(setting)
            check_store(setting.args)
            check_length(setting.args)
        except USER_ERRORS as error:
            raise UserError(f"{experiment.where}: {error}") from error


def _check_standards(named: Sequence[str], games: Sequence[str]) -> None:
    """Raise UserError where tables know a game by its one name in `games` alone."""
    from reporting.measures.fitness import standard_of

    for name, game in zip(named, games, strict=True):
        if standard_of(game) and not standard_of(name):
            raise UserError(f"tables of scores know {name} as {game}: call it so here.")


def _check_scores(args: Args) -> None:
    """Raise UserError where a game has matches instead of scores."""
    from envs.config import EnvConfig
    from envs.registry import describe_env

    for game in args.games:
        if describe_env(args.playing(game).select(EnvConfig)).by_turns:
            raise UserError(
                f"{game} is played by turns, for matches instead of scores: use `run_lab.py run`, and"
                " test_multiple_seed.py --against."
            )


def name_of(game: str) -> str:
    """The one name of a game; the same where no family knows it."""
    from envs.config import EnvError
    from envs.registry import canonical_game

    with contextlib.suppress(EnvError):
        return canonical_game(game)
    return game


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        fail(UserError(f"{message.rstrip('.')}. `{self.prog} --help` says more."))


def _parser() -> argparse.ArgumentParser:
    width = shutil.get_terminal_size().columns
    parser = _Parser(
        description="The lab: experiments of spec files, many runs one after the other.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30, width=width),
    )
    subparsers = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")

    def command(name: str, sentence: str) -> argparse.ArgumentParser:
        added = subparsers.add_parser(name, help=sentence, description=sentence, allow_abbrev=False)
        if name != "check":
            added.add_argument("--results", type=Path, default=DEFAULT, help="folder of the lab")
        return added

    _add_playing(command)
    _add_upkeep(command)
    return parser


def _add_playing(command: Command) -> None:
    """Commands that look at environments."""
    checking = command("check", "say whether every experiment of the spec files could start")
    checking.add_argument("files", nargs="+", type=Path, metavar="FILE")
    running = command("run", "run one experiment: dev, train, enjoy, benchmark or search")
    running.add_argument("file", type=Path, metavar="SPEC_FILE")
    running.add_argument("name", metavar="SPEC_NAME")
    running.add_argument("mode", metavar="MODE")
    scheduling = command("schedule", "run what a JSON file names: {spec file: {experiment: mode}}")
    scheduling.add_argument("schedule", type=Path, metavar="FILE")
    for each in (running, scheduling):
        each.add_argument(
            "--ray-address", help="mode search: an existing Ray cluster, as 10.0.0.1:6379 or auto"
        )
    sentence = "run every experiment of a file; what is done stays; one table"
    benching = command("benchmark", sentence)
    benching.add_argument("file", type=Path, metavar="SPEC_FILE")
    benching.add_argument("--only", nargs="+", default=[], metavar="SPEC_NAME", help="these alone")
    benching.add_argument("--all", action="store_true", help="also what the file marks as extra")
    benching.add_argument("--table", action="store_true", help="run nothing: write table and graphs anew")
    benching.add_argument(
        "--side-by-side", type=at_least_one, default=2, metavar="N", help="sessions at a time (2)"
    )
    sentence = "play only the first N of each experiment (default: as in the file)"
    benching.add_argument("--sessions", type=at_least_one, metavar="N", help=sentence)
    benching.set_defaults(results=None)  # results/ and the file's name
    reporting = command(
        "report", "SABER's report: scores of many games and seeds with intervals, on one page"
    )
    reporting.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="a folder of evaluations, or a csv of game, seed, score, perhaps agent",
    )
    reporting.add_argument(
        "--compare", nargs=2, default=(), metavar="AGENT", help="how probable is it that the first is better?"
    )
    reporting.set_defaults(results=Path("results/report"))
    for each in (running, scheduling, benching):
        each.add_argument("--detach", action="store_true", help="outlive this terminal")
        each.add_argument("--sync-dir", type=Path, help="copy finished results there")


def _add_upkeep(command: Command) -> None:
    """Commands that look after what runs and what is left of it."""
    watching = command("watch", "copy finished results as they come, until Ctrl-C")
    watching.add_argument("--sync-dir", type=Path, required=True, help="where to")
    command("attach", "show a detached lab; Ctrl-C leaves it running")
    command("stop", "end the lab and its sessions, which save")
    resetting = command("reset", "remove all results, or one experiment's, after asking")
    resetting.add_argument("name", nargs="?", metavar="SPEC_NAME")
    clearing = command("clear", "remove sessions that failed or were stopped, after asking")
    for each in (resetting, clearing):
        each.add_argument("--yes", action="store_true", help="do not ask")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(words)
    options.argv, options.fits, options.name_of = words, fits, name_of
    from lab import commands  # only now: it draws graphs, which takes a second to import

    raise_on_interrupt()
    try:
        return int(getattr(commands, options.command)(options))
    except UserError as error:
        fail(error)
    except OSError as error:
        print(f"error: {error.filename or options.command}: {error.strerror or error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
