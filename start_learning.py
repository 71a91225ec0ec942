"""One terminal for a whole run: Redis if none answers, the learner, --nb-actor actors.

    python start_learning.py --game CartPole-v1 --agent reinforce

What a run does not say comes from the spec of its kind of game and agent, where there is one. Ctrl-C saves a
snapshot and stops all. Every argument goes on to launch_learner.py and launch_actor.py. Each process writes
to a file of its own under <path-to-results>/logs/.
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import exit_quietly_on_interrupt, name_missing_packages

    exit_quietly_on_interrupt()
    name_missing_packages()

    from args import parse_args
    from parameters.usage import START_LEARNING

    # Parsed before the imports below, which take seconds: --help and a mistake are answered at once.
    ARGS = parse_args(page=START_LEARNING)

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from acting.settings import event_log_path
from args import Args, UserError, fail, read_args
from envs.config import EnvConfig, EnvError, EnvFailure
from envs.registry import describe_env, family_name
from reporting.measures.fitness import score_levels
from reporting.model_files import steps_in
from supervision.child import Child, ChildSpec, thread_limits
from supervision.last_words import PaceAdvice, last_words
from supervision.process import USER_ERROR
from supervision.redis_server import RedisServer, RedisServerError
from supervision.run_watch import RunWatch
from supervision.score_lines import ScoreLines
from supervision.supervisor import Limits, Output, Supervisor
from supervision.terminal_view import TerminalView
from wiring.code import canonical, check_agent
from wiring.starting.game_specs import spec_of
from wiring.starting.run_plan import ROOT, SAVE_REPLAY_LIMIT_S, Command, RunPlan, check_parts, snapshots_of

LIGHTER = {
    "iqn": "specs/atari/rainbow_iqn_cpu.yaml",
    "rainbow": "specs/atari/rainbow_iqn_cpu.yaml",
    "ppo_rnd": "specs/atari/rnd_cpu.yaml",
}
"""Agents -> the spec of Atari, or of a user's own images, that two cores can train."""


@dataclass(frozen=True)
class Plan(RunPlan):
    """A run on this machine, in one terminal."""

    cores: int
    given: Sequence[str]
    """The user's own words, without what the spec of the kind of game adds."""

    def learner(self) -> ChildSpec:
        """The learner's process."""
        threads = learner_threads(self.cores, self.args.nb_actor, self.args.synchronize_actors_with_learner)
        return self.learner_process(max(threads // self.args.learners, 1), self._gpu(0))

    def actors(self) -> list[ChildSpec]:
        """The actors' processes; none where --serial makes one process of all."""
        numbers = range(0 if self.args.serial else self.args.nb_actor)
        return [self.actor_process(number, words=self._gpu(1 + number)) for number in numbers]

    def page(self) -> ChildSpec:
        """The process of the live page."""
        return ChildSpec("page", Command("live_page.py", self.argv), self.log("page"), thread_limits(1))

    @property
    def lighter(self) -> str:
        """What to do where the run takes days."""
        has_lighter = family_name(self.args.games[0]) in ("atari", "gym.own")
        spec = LIGHTER.get(self.args.agent) if has_lighter else None
        if spec is None or spec in str(self.args.spec):
            return "A lower --T-max ends it earlier."
        return f"--spec {spec} is for two CPU cores."

    def say_where_everything_is(self, screen: Screen, finished: bool) -> None:
        """The last panel and the last lines."""
        folder, name = self.folder, self.args.file_name
        screen.end("finished" if finished else "stopped", steps_in(folder, name))
        program = shlex.split(os.environ.get("START_COMMAND", f"{_python()} {_program('start_learning.py')}"))
        evaluation = self.evaluation() if finished else ()
        for line in last_words(folder, name, [*program, *self.given], evaluation):
            _print(line)

    def evaluation(self) -> list[str]:
        """The command that plays a snapshot; code of the user's own has to be named again."""
        asked = read_args(self.given)
        is_elsewhere = "path_to_results" in asked.model_fields_set
        place = ["--path-to-results", asked.path_to_results] if is_elsewhere else []
        return [_python(), _program("test_multiple_seed.py"), *asked.own_code, *place]

    def _gpu(self, place: int) -> list[str]:
        numbers = self.args.gpu_numbers
        return [] if numbers is None else ["--gpu-number", numbers.split(",")[place]]


def _program(name: str) -> str:
    """As the user may type it from where they stand."""
    return _from_here(str(ROOT / name))


def _python() -> str:
    """The same of this interpreter: the terminal's plain `python` may be one without the packages."""
    plain = shutil.which("python", path=os.environ.get("TERMINAL_PATH"))
    return "python" if plain == sys.executable else _from_here(sys.executable)


def _from_here(path: str) -> str:
    return min(os.path.relpath(path), path, key=len)


def with_spec(args: Args, argv: Sequence[str]) -> tuple[Args, list[str]]:
    """The run with the spec of its kind of game and agent, unless it names one (--spec '': none).

    Raises:
        UserError, EnvError, EnvFailure: what the game is cannot be found out.
    """
    if "spec" in args.model_fields_set:
        return args, list(argv)
    path = spec_of(canonical(args))
    if path is None:
        return args, list(argv)
    _print_error(f"What is not given comes from {path.relative_to(ROOT)} (without it: --spec '').")
    argv = ["--spec", str(path), *argv]
    return read_args(argv), argv


def learner_threads(cores: int, actors: int, synchronised: bool) -> int:
    """CPU threads that a learner with a large network may take; a small one and an actor take one each
    (`wiring.setting.set_up_torch`).

    Synchronised actors wait for the learner nearly all the time, so it may use every core. Actors that do not
    wait keep a core busy each; the learner gets the rest, and at least half.
    """
    return cores if synchronised else max(cores - actors, cores // 2, 1)


class Screen(NamedTuple):
    """What the terminal shows of a run."""

    output: Output
    end: Callable[[str, float], None]
    """Told how the run ended, and at which step."""


@contextlib.contextmanager
def _screen(plan: Plan) -> Iterator[Screen]:
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
def _with_page(plan: Plan, output: Output) -> Iterator[Output]:
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
        for game in args.games:
            check_agent(args.agent, describe_env(args.playing(game).select(EnvConfig)))
        check_parts(args)
    except (UserError, EnvError, EnvFailure) as error:  # else each process would say so
        fail(error)
    earlier = snapshots_of(Path(args.path_to_results), args.file_name)
    plan = Plan(args, argv, earlier, len(os.sched_getaffinity(0)), given)
    if args.event_log_out and len(plan.actors()) > 1:
        paths = (event_log_path(args.event_log_out, actor, args.nb_actor) for actor in range(args.nb_actor))
        _print(f"Each actor writes an event log of its own: {', '.join(map(str, paths))}.")
    redis = RedisServer(plan.redis, plan.conf_file, plan.log("redis"), plan.kept)
    try:
        with _screen(plan) as screen, _with_page(plan, screen.output) as output:
            limits = Limits(stop=SAVE_REPLAY_LIMIT_S) if args.save_replay else Limits()
            run = Supervisor(plan.learner(), plan.actors(), redis, plan.is_finished, output, limits)
            code = run.run()
            if code != USER_ERROR:
                plan.say_where_everything_is(screen, run.finished)
        return code
    except RedisServerError as error:
        fail(error)
    except OSError as error:
        folder = plan.args.path_to_results
        fail(UserError(f"Nothing can be written to {folder} ({error.strerror}): check --path-to-results."))


if __name__ == "__main__":
    try:
        ARGS, ARGV = with_spec(ARGS, sys.argv[1:])
    except (UserError, EnvError, EnvFailure) as mistake:
        fail(mistake)
    sys.exit(main(ARGS, ARGV, sys.argv[1:]))
