"""A run of real processes on real servers; what has ended is started again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from memory.runs.counters import Counters, read_counters
from memory.runs.keys import Keys
from memory.runs.reports import Status, read_statuses
from memory.runs.run import Place
from memory.server.connection import Client
from memory.server.patience import Patience
from tests.faults.disk import NO_DISK, OwnDisk
from tests.faults.processes import Process, wait_until
from tests.faults.servers import GAME, PERSISTENCE, REPLICAS, ClusterServers, PlainServers

ROOT = Path(__file__).parents[2]
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
    "iqn_in_shards": [*IQN, "--shards", "2", "--nb-actor", "2"],
    "a2c": (
        "--agent a2c --head-sizes 16 --rollout-length 8 --rollout-patience 3 --post-episode-sleep 0.1"
    ).split(),
}
"""One that learns from a replay, the same with two learners and in two shards, and one that learns from
rollouts.
"""
MODES = *PERSISTENCE, REPLICAS
MARK = "CHAOS_RUN"


class Stage:
    """Servers, learner and actors of one run, in one folder."""

    def __init__(self, folder: Path, mode: str, agent: str, actors: int) -> None:
        self.folder, self.mode, self.agent, self.results = folder, mode, agent, folder / "results"
        self.mark = uuid.uuid4().hex
        self.results.mkdir(parents=True)
        self._disk = OwnDisk(self.results)
        self.results = self._disk.seen_from_here
        with contextlib.ExitStack() as undo:
            undo.callback(self._disk.close)
            self.servers = self._serve()
            undo.pop_all()
        self.patience = Patience(60.0)  # of the one who looks, while a replica takes over
        self.removed: list[set[int]] = [set() for _ in self.places]  # ids of chunks that a fault took away
        self.learner = self._launch(
            "launch_learner.py",
            "learner",
            "--path-to-results",
            str(self._disk.folder),
            within=self._disk.enter,
        )
        numbers = range(max(actors, len(self.places)))
        self.actors = [self._launch("launch_actor.py", f"actor_{n}", "--id-actor", str(n)) for n in numbers]

    def _serve(self) -> PlainServers | ClusterServers:
        shards = shards_of(self.agent)
        if self.mode == REPLICAS:
            return ClusterServers(self.folder, shards)
        return PlainServers(self.folder, self.mode, shards, self._env())

    @property
    def plain(self) -> PlainServers:
        """Its servers, where they are no cluster."""
        assert isinstance(self.servers, PlainServers)
        return self.servers

    @property
    def places(self) -> list[Place]:
        """Shards, the first first."""
        return self.servers.places

    @property
    def client(self) -> Client:
        """Of the first shard."""
        return self.places[0].client

    @property
    def workers(self) -> list[Process]:
        """Learner and actors."""
        return [self.learner, *self.actors]

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
        flags = [*WORDS, *AGENTS[self.agent], *self.servers.words]
        command = [*within, sys.executable, str(ROOT / script), *flags, *words]
        return Process(command, self.folder / f"{name}.log", self._env())

    def _env(self) -> dict[str, str]:
        return {**os.environ, "OMP_NUM_THREADS": "1", MARK: self.mark}

    @property
    def counters(self) -> list[Counters]:
        """Those of each shard."""
        return [self.patience(read_counters, *place) for place in self.places]

    @property
    def statuses(self) -> dict[str, Status]:
        """What each process last said of itself."""
        return self.patience(read_statuses, self.client, KEYS)

    def await_progress(self, limit_s: float) -> None:
        """Until actors have played, every shard has got some of it and the learner has learned since now, and
        has said how far it is; ended processes start again.
        """
        seen: list[Counters] = []

        def goes_on() -> bool:
            self._look_after_workers()
            now = self.counters
            if not seen or any(map(_went_back, now, seen)):
                seen[:] = now
            filled = not self.has_replay or all(map(_has_grown, now, seen))
            return filled and now[0].steps > seen[0].steps + 32 and now[0].batches > seen[0].batches + 2

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
            statuses = self.statuses
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
        for process in self.workers:
            process.kill()
        self.servers.end()

    def close(self) -> None:
        """After `leave`: give back what only this machine's administrator can take."""
        for place in self.places:
            place.client.close()
        self._disk.close()

    @property
    def accepted(self) -> list[int]:
        """Chunks that each shard counts, or rollouts that Redis counts as pushed."""
        if self.has_replay:
            return [counters.last_chunk for counters in self.counters]
        return [sum(self.per_actor("pushed").values())]

    def per_actor(self, prefix: str) -> dict[int, int]:
        """The counters `<prefix>:<actor>`."""
        found = self.patience(self.client.hgetall, KEYS.counters)
        split = {name.decode().partition(":"): int(value) for name, value in found.items()}
        return {int(actor): value for (name, _, actor), value in split.items() if name == prefix}

    def told(self, name: str) -> float:
        """What the learner last said of itself; 0 before it did."""
        return float(self.statuses.get("learner", {}).get(name) or 0)

    def orphans(self) -> list[int]:
        """Processes of this run that are still there."""
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _has_mark(path, self.mark)]


def _has_mark(path: Path, mark: str) -> bool:
    with contextlib.suppress(OSError):
        return f"{MARK}={mark}".encode() in (path / "environ").read_bytes()
    return False


def shards_of(agent: str) -> int:
    """Of the run of one of AGENTS."""
    return 2 if agent == "iqn_in_shards" else 1


def _went_back(now: Counters, before: Counters) -> bool:
    return now.epoch != before.epoch or now.steps < before.steps or now.last_chunk < before.last_chunk


def _has_grown(now: Counters, before: Counters) -> bool:
    return now.last_chunk > before.last_chunk
