"""One terminal for a whole run: Redis if none answers, the learner, --nb-actor actors.

    python start_learning.py --game CartPole-v1 --agent reinforce

What a run does not say comes from the spec of its kind of game and agent, where there is one. Ctrl-C saves a
snapshot and stops all. Every argument goes on to launch_learner.py and launch_actor.py. Each process writes
to a file of its own under <path-to-results>/logs/.
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import begin_program

    begin_program()

    from args import parse_args
    from parameters.usage import START_LEARNING

    # Parsed before the imports below, which take seconds: --help and a mistake are answered at once.
    ARGS = parse_args(page=START_LEARNING)

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from acting.settings import event_log_path
from args import Args, UserError, fail
from envs.config import EnvError, EnvFailure
from envs.registry import check_needs
from memory.server.connection import RedisRefused
from reporting.measures.fitness import score_levels
from reporting.model_files import steps_in
from supervision.child import Child
from supervision.last_words import PaceAdvice
from supervision.process import INTERRUPTED, USER_ERROR, raise_on_interrupt
from supervision.redis_server import RedisServer, RedisServerError
from supervision.run_watch import RunWatch
from supervision.score_lines import ScoreLines
from supervision.supervisor import Output, Supervisor
from supervision.terminal_view import TerminalView
from wiring.code import canonical, check_games
from wiring.starting.game_specs import with_spec
from wiring.starting.local_plan import LocalPlan
from wiring.starting.run_plan import check_model, check_parts, snapshots_of


class Screen(NamedTuple):
    """What the terminal shows of a run."""

    output: Output
    end: Callable[[str, float], None]
    """Told how the run ended, and at which step."""


@contextlib.contextmanager
def _screen(plan: LocalPlan) -> Iterator[Screen]:
    """A live picture on a terminal; elsewhere lines of scores among the processes' own."""
    advice, levels = PaceAdvice(plan.lighter), score_levels(plan.args.game)
    lines = ScoreLines(levels)
    with contextlib.closing(RunWatch(plan.redis, plan.keys)) as watch, contextlib.ExitStack() as stack:
        view = None
        if sys.stdout.isatty():
            title = f"{plan.args.game} · {plan.args.agent}"
            view = stack.enter_context(TerminalView(title, watch, levels))
        say = view.print if view else _print_error

        def refresh() -> None:
            if not watch.look():
                return
            if view:
                view.refresh()
            elif line := lines(watch.story):
                _print(line)
            if sentence := advice(watch.story):
                say(sentence)

        output = Output(say, None if view else _print, refresh)
        yield Screen(output, view.end if view else lambda how, t: None)


@contextlib.contextmanager
def _with_page(plan: LocalPlan, output: Output) -> Iterator[Output]:
    """The live page, if it is asked for: what it says is printed, and its end does not end the run."""
    if not plan.args.page:
        yield output
        return
    page = Child(plan.page())

    def refresh() -> None:
        output.refresh()
        for line in page.new_lines():
            output.print(line)

    page.start()
    try:
        yield replace(output, refresh=refresh)
    finally:
        page.kill()


def _print(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, flush=True)


def _print_error(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def main(args: Args, argv: Sequence[str], given: Sequence[str]) -> int:
    """Run until the end; the supervisor's exit code."""
    try:
        args = canonical(args)  # as the processes call the run
        check_games(args)
        check_needs(args.games)
        check_parts(args)
        check_model(args)
    except (UserError, EnvError, EnvFailure) as error:  # else each process would say so
        fail(error)
    earlier = snapshots_of(Path(args.path_to_results), args.file_name)
    plan = LocalPlan(args, argv, earlier, len(os.sched_getaffinity(0)), given)
    if args.event_log_out and len(plan.actors()) > 1:
        paths = (event_log_path(args.event_log_out, actor, args.nb_actor) for actor in range(args.nb_actor))
        _print(f"Each actor writes an event log of its own: {', '.join(map(str, paths))}.")
    redis = RedisServer(plan.redis, plan.conf_file, plan.log("redis"), plan.kept)
    raise_on_interrupt()
    try:
        with _screen(plan) as screen, _with_page(plan, screen.output) as output:
            run = Supervisor(plan.learner(), plan.actors(), redis, plan.is_finished, output, plan.limits)
            code = run.run()
            if code != USER_ERROR:
                screen.end("finished" if run.finished else "stopped", steps_in(plan.folder, args.file_name))
                for line in plan.last_words(run.finished):
                    _print(line)
        return code
    except (RedisServerError, RedisRefused) as error:
        fail(error)
    except OSError as error:
        fail(plan.unwritable(error))
    except KeyboardInterrupt:  # once the processes have ended
        return INTERRUPTED


if __name__ == "__main__":
    try:
        ARGS, ARGV = with_spec(ARGS, sys.argv[1:])
    except (UserError, EnvError, EnvFailure) as mistake:
        fail(mistake)
    sys.exit(main(ARGS, ARGV, sys.argv[1:]))
