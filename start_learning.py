"""One terminal for a whole run: Redis if none answers, the learner, --nb-actor actors.

    python start_learning.py --game space_invaders --memory-capacity 100000 --learn-start 8000

Ctrl-C saves a snapshot and stops all. Every argument goes on to launch_learner.py and launch_actor.py. Each
process writes to a file of its own under <path-to-results>/logs/.
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import exit_quietly_on_interrupt

    exit_quietly_on_interrupt()

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from args import Args, UserError, fail, parse_args
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import UNREACHABLE, RedisConfig, make_client, refusals_as_outages
from supervision.child import ChildSpec
from supervision.redis_server import RedisServer, RedisServerError
from supervision.supervisor import Limits, Output, Supervisor
from supervision.terminal_view import TerminalView

ROOT = Path(__file__).resolve().parent
SAVE_REPLAY_LIMIT_S = 600.0
"""How long a learner that stops may take with --save-replay: a million Atari transitions take minutes."""


@dataclass(frozen=True)
class Plan:
    """What the command line asks for."""

    args: Args
    argv: Sequence[str]
    cores: int
    started: float
    """Time of day (s): a snapshot younger than this is this run's own."""

    @property
    def redis(self) -> RedisConfig:
        """Where the server is."""
        return self.args.select(RedisConfig)

    @property
    def keys(self) -> Keys:
        """Names of the run's keys."""
        return Keys(self.args.run_name)

    @property
    def conf_file(self) -> Path:
        """--redis-conf, seen from here or from this file."""
        given = Path(self.args.redis_conf)
        return given if given.exists() else ROOT / given

    def learner(self) -> ChildSpec:
        """The learner's process."""
        threads = learner_threads(self.cores, self.args.nb_actor, self.args.synchronize_actors_with_learner)
        return ChildSpec("learner", self._learner_command, self.log("learner"), _threads(threads))

    def actors(self) -> list[ChildSpec]:
        """The actors' processes; none where --serial makes one process of all."""
        return [] if self.args.serial else [self._actor(number) for number in range(self.args.nb_actor)]

    def log(self, name: str) -> Path:
        """File of one process."""
        return Path(self.args.path_to_results) / "logs" / f"{self.args.file_name}_{name}.log"

    def _actor(self, number: int) -> ChildSpec:
        script = [sys.executable, str(ROOT / "launch_actor.py")]
        command = [*script, *self.argv, "--id-actor", str(number), *self._gpu(1 + number)]
        return ChildSpec(f"actor {number}", lambda: command, self.log(f"actor_{number}"), _threads(1))

    def _learner_command(self) -> list[str]:
        # --model is for the first start: a learner that is started again resumes from its own snapshot.
        resume = ["--model", ""] if self._has_own_snapshot() else []
        return [sys.executable, str(ROOT / "launch_learner.py"), *self.argv, *self._gpu(0), *resume]

    def _has_own_snapshot(self) -> bool:
        snapshots = Path(self.args.path_to_results).glob(f"last_model_{self.args.file_name}_*.pth")
        return any(path.stat().st_mtime >= self.started for path in snapshots)

    def _gpu(self, place: int) -> list[str]:
        numbers = self.args.gpu_numbers
        return [] if numbers is None else ["--gpu-number", numbers.split(",")[place]]

    def is_finished(self, role: str) -> bool:
        """Whether that process has no more to do: actors at T_max, the learner when it says so."""
        client = make_client(self.redis)
        with contextlib.closing(client), contextlib.suppress(*UNREACHABLE), refusals_as_outages():
            counters = read_counters(client, self.keys)
            return bool(counters.finished) or (role != "learner" and counters.steps >= self.args.T_max)
        return False


def learner_threads(cores: int, actors: int, synchronised: bool) -> int:
    """CPU threads that a learner with a large network may take; a small one and an actor take one each
    (`wiring.setting.set_up_torch`).

    Synchronised actors wait for the learner nearly all the time, so it may use every core. Actors that do not
    wait keep a core busy each; the learner gets the rest, and at least half.
    """
    return cores if synchronised else max(cores - actors, cores // 2, 1)


def _threads(count: int) -> dict[str, str]:
    """Settings of PyTorch's thread pool, less those that the user made.

    By itself each process would take all cores, and a thread that waits for its siblings would keep its core
    busy the while. With other processes on the same cores that is slow: on 2 cores under load, updates per
    second were 0.7 so, 2.2 with one thread and 2.7 with two that wait passively.
    """
    settings = {"OMP_NUM_THREADS": str(count), "OMP_WAIT_POLICY": "PASSIVE"}
    return {name: value for name, value in settings.items() if name not in os.environ}


@contextlib.contextmanager
def _output(plan: Plan) -> Iterator[Output]:
    """A live picture on a terminal; elsewhere the processes' own lines."""
    if sys.stdout.isatty():
        with TerminalView(f"{plan.args.game} · {plan.args.agent}", plan.redis, plan.keys) as view:
            yield Output(view.print, refresh=view.refresh)
    else:
        yield Output(_print_error, _print)


def _print(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, flush=True)


def _print_error(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def main(argv: Sequence[str]) -> int:
    """Run until the end; the supervisor's exit code."""
    args = parse_args(argv, "Redis, the learner and the actors in one terminal; Ctrl-C saves and stops all.")
    plan = Plan(args, argv, len(os.sched_getaffinity(0)), time.time())
    redis = RedisServer(plan.redis, plan.conf_file, plan.log("redis"))
    try:
        with _output(plan) as output:
            limits = Limits(stop=SAVE_REPLAY_LIMIT_S) if args.save_replay else Limits()
            return Supervisor(plan.learner(), plan.actors(), redis, plan.is_finished, output, limits).run()
    except RedisServerError as error:
        fail(error)
    except OSError as error:
        folder = plan.args.path_to_results
        fail(UserError(f"Nothing can be written to {folder} ({error.strerror}): check --path-to-results."))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
