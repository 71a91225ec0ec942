"""The lab: experiments of spec files, many runs at a time.

python run_lab.py check specs/lab/classic.yaml
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from args import UserError
from lab.spec import Experiment, read_experiments
from wiring import canonical, say_plainly, sentences_for_errors, setting_of
from wiring.endings import USER_ERRORS


def check(files: Sequence[Path]) -> None:
    """Say of every experiment that it could start; UserError at the first that could not."""
    for path in files:
        for experiment in read_experiments(path).values():
            fits(experiment)
            print(f"{experiment.where}: ready.")


def fits(experiment: Experiment) -> None:
    """Look at the environments, and see whether the agent can play them. Raises UserError."""
    for game in experiment.meta.games or (None,):
        args = experiment.args(**({"game": game} if game else {}))
        try:
            setting_of(canonical(args))
        except USER_ERRORS as error:
            raise UserError(f"{experiment.where}: {error}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="The lab: experiments of spec files, many runs at a time.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checking = commands.add_parser("check", help="say whether every experiment of the spec files could start")
    checking.add_argument("files", nargs="+", type=Path, metavar="FILE")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; the exit code."""
    say_plainly()
    options = _parser().parse_args(argv)
    with sentences_for_errors():
        check(options.files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
