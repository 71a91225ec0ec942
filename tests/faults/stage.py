"""A run of real processes on a real server, through a proxy; what has ended is started again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from memory.runs.counters import Counters, read_counters
from memory.runs.keys import Keys
from memory.runs.reports import read_statuses
from memory.server.connection import Client, RedisConfig, make_client
from memory.server.replies import UNREACHABLE
from tests.faults.disk import NO_DISK, OwnDisk
from tests.faults.proxy import Proxy

ROOT = Path(__file__).parents[2]
GAME = "probe:catch"
KEYS = Keys(GAME)
WORDS = (
    f"--game {GAME} --learn-start 200 --hidden-size 16 --envs-per-actor 2 --threads 1 --T-max 100000000"
    " --snapshot-seconds 4 --log-interval 2000"
).split()
IQN = (
    "--agent iqn --memory-capacity 400000 --replay-frequency 16 --batch-size 8 --num-tau-samples 4"
    " --num-tau-prime-samples 4 --num-quantile-samples 4 --target-update 400"
    " --weight-synchro-frequency 80 --post-episode-sleep 0.2"
).split()
AGENTS = {
    "iqn": IQN,
    "iqn_by_two": [*IQN, "--learners", "2"],
    "a2c": (
        "--agent a2c --head-sizes 16 --rollout-length 8 --rollout-patience 3 --post-episode-sleep 0.1"
    ).split(),
}
"""One that learns from a replay, the same with two learners, and one that learns from rollouts."""
MODES = {
    "none": ["--save", "", "--appendonly", "no"],
    "rdb": ["--save", "1 1", "--appendonly", "no", "--stop-writes-on-bgsave-error", "no"],
    "everysec": ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"],
    "always": ["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
}
"""What survives a killed server: as the files of redis_conf/ say it; dumps come every second here."""
MARK = "CHAOS_RUN"


class Violation(AssertionError):
    """Something that must hold in spite of faults does not."""


def wait_until(condition: Callable[[], bool], limit_s: float, what: str) -> None:
    """Raises Violation after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise Violation(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.1)


class Process:
    """A process that is started again whenever it has ended."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str]) -> None:
        self._command, self.log, self._env = command, log, env
        self.starts, self.started_at = 0, 0.0
        self.start()

    def start(self) -> None:
        """Begin, with a log that goes on."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.log.parent,
                env=self._env,
                preexec_fn=_heed_hangup,
            )
        self.starts, self.started_at = self.starts + 1, time.time()

    def look_after(self) -> None:
        """Start it again where it has ended by a signal or with a sentence; anything else is a Violation."""
        code = self.process.poll()
        if code is None:
            return
        words = self.log.read_text(errors="replace")
        if code not in (-signal.SIGKILL, 1) or "Traceback" in words:
            raise Violation(f"{self.log.name} ended with code {code}: {words[-2000:]}")
        self.start()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


class Stage:
    """Server, proxy, learner and actors of one run, in one folder."""

    def __init__(self, folder: Path, mode: str, agent: str, actors: int) -> None:
        self.folder, self.mode, self.agent, self.results = folder, mode, agent, folder / "results"
        self.mark = uuid.uuid4().hex
        self.removed: set[int] = set()  # ids of chunks that a fault took away
        self.results.mkdir(parents=True)
        self._disk = OwnDisk(self.results)
        self.results = self._disk.seen_from_here
        self.redis_port = _free_port()
        self.redis = self._redis()
        self.client: Client = make_client(RedisConfig("127.0.0.1", self.redis_port))
        self.await_redis()
        self.proxy = Proxy(self.redis_port)
        self.learner = self._launch(
            "launch_learner.py",
            "learner",
            "--path-to-results",
            str(self._disk.folder),
            within=self._disk.enter,
        )
        self.actors = [
            self._launch("launch_actor.py", f"actor_{n}", "--id-actor", str(n)) for n in range(actors)
        ]

    @property
    def workers(self) -> list[Process]:
        """Learner and actors."""
        return [self.learner, *self.actors]

    def _redis(self) -> Process:
        program = shutil.which("redis-server")
        assert program, "redis-server is not on the PATH"
        place = ["--port", str(self.redis_port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        return Process([program, *place, *MODES[self.mode]], self.folder / "redis.log", self._env())

    @property
    def has_replay(self) -> bool:
        """Whether the agent learns from chunks, and not from rollouts."""
        return self.agent != "a2c"

    @property
    def learners(self) -> list[int]:
        """Process numbers of those that learn: torchrun's children, where there are several."""
        pid = self.learner.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        words = children.read_text().split() if self.agent == "iqn_by_two" and children.exists() else []
        return list(map(int, words)) or [pid]

    @property
    def has_own_disk(self) -> bool:
        """Whether results/ is a small file system of its own, which can be filled."""
        return self._disk.kind != NO_DISK

    @property
    def disk(self) -> str:
        """What kind of file system that is."""
        return self._disk.kind

    def _launch(self, script: str, name: str, *words: str, within: Sequence[str] = ()) -> Process:
        place = ["--host-redis", "127.0.0.1", "--port-redis", str(self.proxy.port)]
        command = [*within, sys.executable, str(ROOT / script), *WORDS, *AGENTS[self.agent], *place, *words]
        return Process(command, self.folder / f"{name}.log", self._env())

    def _env(self) -> dict[str, str]:
        return {**os.environ, "OMP_NUM_THREADS": "1", MARK: self.mark}

    def await_redis(self) -> None:
        """Until the server answers."""

        def answers() -> bool:
            with contextlib.suppress(*UNREACHABLE):
                return bool(self.client.ping())
            return False

        wait_until(answers, 60, "Redis answers")

    @property
    def counters(self) -> Counters:
        """Those of the run."""
        return read_counters(self.client, KEYS)

    def await_progress(self, limit_s: float) -> None:
        """Until actors have played and the learner has learned since now, and has said how far it is; ended
        processes start again.
        """
        seen: list[Counters] = []

        def goes_on() -> bool:
            self._look_after_workers()
            now = self.counters
            if not seen or now.epoch != seen[0].epoch or now.steps < seen[0].steps:
                seen[:] = [now]
            return now.steps > seen[0].steps + 32 and now.batches > seen[0].batches + 2

        wait_until(goes_on, limit_s, "The run goes on")
        went_on_at = time.time()

        def has_spoken() -> bool:
            self._look_after_workers()
            return self.told("time") > went_on_at

        wait_until(has_spoken, limit_s, "The learner says how far it is")

    def await_everybody(self, limit_s: float) -> None:
        """Until each process has spoken since its last start: it has come in."""

        def have_spoken() -> bool:
            self._look_after_workers()
            statuses = read_statuses(self.client, KEYS)
            roles = ["learner", *(f"actor:{number}" for number in range(len(self.actors)))]
            spoken = [float(statuses.get(role, {}).get("time") or 0) for role in roles]
            return all(spoke > each.started_at for spoke, each in zip(spoken, self.workers, strict=True))

        wait_until(have_spoken, limit_s, "Everybody has come in")

    def _look_after_workers(self) -> None:
        for process in self.workers:
            process.look_after()

    def leave(self) -> None:
        """End everything, the learner last so that it collects all scores."""
        for process in reversed(self.workers):
            process.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.process.wait(90)
        for process in [*self.workers, self.redis]:
            process.kill()
        self.proxy.close()

    def close(self) -> None:
        """After `leave`: give back what only this machine's administrator can take."""
        self.client.close()
        self._disk.close()

    @property
    def accepted(self) -> int:
        """Chunks, or rollouts, that Redis holds or counts as pushed."""
        return self.counters.last_chunk if self.has_replay else sum(self.per_actor("pushed").values())

    def per_actor(self, prefix: str) -> dict[int, int]:
        """The counters `<prefix>:<actor>`."""
        found = self.client.hgetall(KEYS.counters)
        split = {name.decode().partition(":"): int(value) for name, value in found.items()}
        return {int(actor): value for (name, _, actor), value in split.items() if name == prefix}

    def told(self, name: str) -> float:
        """What the learner last said of itself; 0 before it did."""
        return float(read_statuses(self.client, KEYS).get("learner", {}).get(name) or 0)

    def orphans(self) -> list[int]:
        """Processes of this run that are still there."""
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _has_mark(path, self.mark)]


def _has_mark(path: Path, mark: str) -> bool:
    with contextlib.suppress(OSError):
        return f"{MARK}={mark}".encode() in (path / "environ").read_bytes()
    return False


def _heed_hangup() -> None:
    """Also where this program was started to outlive its terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
