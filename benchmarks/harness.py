"""What every section measures with: a server, recorded random play, a replay to fill, contestants in turn."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from acting.player import Player, VectorStep
from acting.writer import ExperienceWriter
from agents.random_agent import RandomAgent, RandomConfig
from args import read_args
from envs.config import EnvConfig
from envs.registry import make_env
from envs.seeding import environment_seeds
from memory.chunks.codec import Meta
from memory.replay.batch import Batch
from memory.replay.replay import Replay
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import ChunkPusher
from memory.runs.run import open_run
from memory.runs.scripts import Sender
from memory.server.connection import Client, RedisConfig
from memory.server.patience import Patience
from supervision.redis_server import RedisServer
from wiring.setting import Setting, setting_of
from wiring.sources import sizes_of

ROOT = Path(__file__).resolve().parents[1]
CONF_FILE = ROOT / "redis_conf/redis_rainbow_6379.conf"
CAPACITY = 65_536
BUFFER = 1_000
"""Transitions that an actor of the original pushes at once."""
BETA = 0.4
PATIENCE_S = 10.0
CLOCK_OF_PROCESS = 2
"""In Linux the last bits of the clock's number, before them the inverted process number."""

Name = TypeVar("Name")
Found = TypeVar("Found")


@contextmanager
def throwaway_server() -> Iterator[RedisConfig]:
    """A Redis server on a Unix socket in a temporary folder; both are gone at the end.

    The folder of the process becomes the repository's, from where specs are named.
    """
    os.chdir(ROOT)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as start_learning.py does for its processes
    folder = tempfile.TemporaryDirectory(prefix="benchmark-", dir="/tmp")
    with folder as name, serving(Path(name), "redis") as redis:
        yield redis


def serving(folder: Path, name: str) -> AbstractContextManager[RedisConfig]:
    """A server whose Unix socket lies in a folder, until the end of the block."""
    return started(RedisConfig(str(folder / f"{name}_socket"), 0), CONF_FILE, folder / f"{name}.log")


@contextmanager
def started(redis: RedisConfig, conf_file: Path, log: Path) -> Iterator[RedisConfig]:
    """A server with this configuration, until the end of the block."""
    server = RedisServer(redis, conf_file, log)
    server.ensure()
    try:
        yield redis
    finally:
        server.stop()


def setting_for(words: str) -> Setting:
    """The setting that a launcher makes of these flags."""
    return setting_of(read_args(words.split()))


def random_agent(setting: Setting) -> RandomAgent:
    """An agent that takes random actions."""
    seed = setting.args.seed
    return RandomAgent(setting.problem, RandomConfig(), torch.device("cpu"), seed, learning=False)


def record(setting: Setting, environments: int, steps: int) -> list[VectorStep]:
    """`steps` vector steps of random play."""
    args = setting.args
    env = make_env(args.select(EnvConfig), environment_seeds(args.seed, 0, 0, environments))
    with closing(Player(random_agent(setting), env, args.history_length, args.seed)) as player:
        return [player.step(at_random=True) for _ in range(steps)]


def recorded_batches(
    setting: Setting, client: Client, batches: int, environments: int, steps: int
) -> list[Batch]:
    """Batches drawn through the replay from `steps` vector steps of random play."""
    with closing(Road(setting, client, environments)) as road:
        road.push(record(setting, environments, steps))
        road.replay.ingest()
        return [road.replay.sample(setting.args.batch_size, BETA) for _ in range(batches)]


def opened(client: Client, keys: Keys, setting: Setting) -> int:
    """Begins a run that is all new; its epoch."""
    return open_run(client, keys, setting.args.shared(), False, 0, {}, "benchmark").epoch


class Road:
    """An opened run: one actor's writer and pusher, the learner's replay; `close` removes it.

    First priorities are those of random warm-up: stored with each transition, but none is computed.
    """

    def __init__(self, setting: Setting, client: Client, environments: int) -> None:
        args, sizes = setting.args, sizes_of(setting.args)
        self.client, self.keys = client, Keys(f"benchmark {os.getpid()}")
        self._lease = Lease(client, self.keys.actor_lease(0)).acquire("actor 0")
        epoch = opened(client, self.keys, setting)
        slots, token = sizes.replay.slots, self._lease.token
        self._pusher = ChunkPusher(Sender(client, self.keys, 0, token, epoch), slots, Patience(PATIENCE_S))
        meta: Meta = {"run": self.keys.run, "epoch": epoch, "actor": 0}
        self._writer = ExperienceWriter(random_agent(setting), environments, sizes.chunk, sizes.rule, meta)
        generator = np.random.default_rng(args.seed)
        self.replay = Replay(client, self.keys, sizes.replay, epoch, sizes.rule, generator)

    def push(self, steps: Sequence[VectorStep]) -> int:
        """Push vector steps; returns how many transitions they hold."""
        for step in steps:
            packets = self._writer.add(step)
            if packets or (self._pusher.unsettled and self._pusher.is_answered()):
                self._pusher.settle()
            if packets:
                self._pusher.send(packets)
        self._pusher.settle()
        return sum(int(np.count_nonzero(step.active)) for step in steps)

    def close(self) -> None:
        """Remove the run."""
        self._lease.release()
        self.client.unlink(*self.keys.experience)


Works = Mapping[str, Callable[[], int]]
"""By name: does a piece of work and returns how much it was."""


class Effort(NamedTuple):
    """How long to measure."""

    rounds: int
    seconds: float  # of one contestant's part of a round


class MedianRange(NamedTuple):
    """Several measurements of one thing."""

    median: float
    low: float
    high: float

    def __format__(self, form: str) -> str:
        return f"{self.median:{form}} ({self.low:{form}} to {self.high:{form}})"


def median_range(values: Iterable[float]) -> MedianRange:
    """Median, least and greatest of at least one value."""
    known = list(values)
    return MedianRange(statistics.median(known), min(known), max(known))


class Contestant:
    """A process that works when asked, for as long as asked, and sleeps otherwise.

    What one does to its memory and threads leaves the others alone.
    """

    def __init__(self, build: Callable[..., Works], *arguments: Any) -> None:
        """`build`, a module's function called in the process, returns the work that may be asked for."""
        context = multiprocessing.get_context("spawn")
        self._is_ready = False
        self._pipe, its_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(its_end, build, arguments), daemon=True)
        self._process.start()
        its_end.close()

    def ready(self) -> None:
        """Wait until it is built; EOFError where it could not be, and the process printed why."""
        if not self._is_ready:
            self._pipe.recv()
            self._is_ready = True

    def begin(self, work: str, seconds: float) -> None:
        """Let it do `work` for so long, or one piece if that takes longer, beside the caller."""
        self._pipe.send((work, seconds))

    def rate(self) -> float:
        """Wait until it is done; how much of the work it did per second."""
        return float(self._pipe.recv())

    def rate_of(self, work: str, seconds: float) -> float:
        """How much of `work` it does per second, measured for so long."""
        self.begin(work, seconds)
        return self.rate()

    @property
    def processor_s(self) -> float:
        """Processor time of its process, by `processor_seconds`."""
        assert self._process.pid is not None
        return processor_seconds(self._process.pid)

    def __enter__(self) -> Contestant:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, build: Callable[..., Works], arguments: tuple[Any, ...]) -> None:
    works = build(*arguments)
    for work in works.values():
        work()  # a first piece, which is not timed
    pipe.send("ready")
    while True:
        try:
            work_name, seconds = pipe.recv()
        except EOFError:
            return
        work, done, began = works[work_name], 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds or not done:
            done += work()
        pipe.send(done / spent)


def processor_seconds(process: int) -> float:
    """Processor time of all threads of a process, to the nanosecond: /proc counts in 10 ms."""
    return time.clock_gettime(~process << 3 | CLOCK_OF_PROCESS)


def server_seconds(client: Client) -> float:
    """Processor time of a Redis server."""
    info = client.info("cpu")
    return float(info["used_cpu_user"] + info["used_cpu_sys"])


class Race(NamedTuple):
    """What each contestant did per second in each round."""

    of: Mapping[str, list[float]]

    def ratio(self, name: str, baseline: str) -> MedianRange:
        """The ratio of two contestants in the same rounds."""
        return median_range(one / other for one, other in zip(self.of[name], self.of[baseline], strict=True))

    def rates(self) -> dict[str, MedianRange]:
        """The rates of all."""
        return {name: median_range(values) for name, values in self.of.items()}


def race(contestants: Mapping[str, Contestant], work: str, effort: Effort) -> Race:
    """Let each contestant work for a while in every round."""
    for contestant in contestants.values():
        contestant.ready()
    sides = {name: partial(each.rate_of, work, effort.seconds) for name, each in contestants.items()}
    return Race(by_turns(sides, effort.rounds))


def by_turns(sides: Mapping[Name, Callable[[], Found]], rounds: int) -> dict[Name, list[Found]]:
    """What each side returns in every round; from round to round the order is reversed."""
    found: dict[Name, list[Found]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            found[name].append(sides[name]())
    return found


def on_device(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """The command line with --device; exit code 2 where it asks for a GPU and there is none."""
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args(argv)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("error: PyTorch finds no CUDA device here; --device cpu goes without.", file=sys.stderr)
        raise SystemExit(2)
    return options
