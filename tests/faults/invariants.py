"""What must hold after every fault, and at the end."""

from __future__ import annotations

import csv
import signal
from pathlib import Path
from typing import NamedTuple

import numpy as np

from learning.saved.snapshot import last_models, load_snapshot
from memory.chunks.chunk import CHUNK_ID, chunk_from_bytes, chunk_id_of
from memory.rollouts.blocks import NAMED, rollout_from_bytes
from memory.runs.counters import FIELDS, Counters, parse_counts
from memory.runs.reports import read_statuses
from tests.faults.stage import KEYS, Stage, Violation

MAX_PROCESS_BYTES, MAX_REDIS_BYTES = 1 << 30, 300 << 20
"""A learner of this size takes 0.4 GB, mostly PyTorch; the replay of an hour of this run some 100 MB."""
OUTSTANDING = 2
"""Rollouts of one actor: --max-policy-lag + 1."""
LOSES_NOTHING = ("everysec", "always")
"""A server that is killed, unlike its machine, has written all that it confirmed."""


def check(condition: bool, sentence: str) -> None:
    """Raises Violation."""
    if not condition:
        raise Violation(sentence)


class Clocks(NamedTuple):
    """How far a run is, at one moment."""

    accepted: int  # chunks or rollouts
    steps: int  # T_actors
    known_steps: int  # T_actors as the learner last said
    updates: int  # as the learner last said


def read_clocks(stage: Stage) -> Clocks:
    """As they are now."""
    known, updates = int(stage.told("t_actors")), int(stage.told("updates"))
    return Clocks(stage.accepted, stage.counters.steps, known, updates)


def check_store(stage: Stage) -> None:
    """What is held is whole, and counts once."""
    if stage.has_replay:
        check_chunks(stage)
    else:
        check_rollouts(stage)


def check_rollouts(stage: Stage) -> None:
    """Every rollout that waits is whole and named; no more are outstanding than may be."""
    with stage.client.pipeline(transaction=True) as pipeline:
        pipeline.lrange(KEYS.rollouts, 0, -1)
        pipeline.hgetall(KEYS.counters)
        waiting, fields = pipeline.execute()
    counts = {name.decode(): int(value) for name, value in fields.items()}
    for value in waiting:
        actor, sequence = NAMED.unpack_from(value)
        rollout_from_bytes(value[NAMED.size :])
        check(sequence <= counts[f"pushed:{actor}"], f"rollout {sequence} of actor {actor} is not counted")
    for name, pushed in counts.items():
        if name.startswith("pushed:"):
            outstanding = pushed - counts.get(name.replace("pushed", "learned"), 0)
            check(0 <= outstanding <= OUTSTANDING, f"{outstanding} rollouts are outstanding: {name}")


def check_chunks(stage: Stage) -> None:
    """Every chunk is whole, has its priorities, and counts once."""
    with stage.client.pipeline(transaction=True) as pipeline:
        pipeline.hgetall(KEYS.counters)
        pipeline.hmget(KEYS.counters, list(FIELDS))
        pipeline.hgetall(KEYS.chunks)
        pipeline.hgetall(KEYS.priorities)
        fields, values, chunks, priorities = pipeline.execute()
    pushed = sum(int(value) for name, value in fields.items() if name.startswith(b"pushed:"))
    newest = Counters(*parse_counts(values)).last_chunk
    ids = sorted(map(int, chunks))
    check(not ids or ids[-1] <= newest, f"chunk {ids[-1:]} is not counted: {newest} are")
    missing = set(range(1, newest + 1)) - set(ids) - stage.removed
    check(not missing, f"chunks {sorted(missing)[:5]} of {newest} are missing")
    # An actor's numbers go on where a dump has lost some of its pushes.
    whole = pushed == newest or (stage.mode == "rdb" and pushed > newest)
    check(whole, f"{pushed} pushes were accepted, {newest} chunks are counted")
    named = {chunk_id_of(row) for row in priorities.values()}
    check(set(ids) <= named <= set(ids) | stage.removed, "chunks and priorities do not have the same ids")
    for value in chunks.values():
        chunk_from_bytes(value)


def check_nothing_lost(stage: Stage, before: Clocks, accepted: int, kind: str) -> int:
    """Chunks or rollouts that were acknowledged before a fault and are gone after it; only a server may lose
    some.
    """
    lost = max(before.accepted - accepted, 0)
    check(lost == 0 or _may_lose(stage, kind), f"{lost} that were acknowledged are lost by {kind}")
    return lost


def check_clocks(stage: Stage, before: Clocks, kind: str) -> None:
    """Once all goes on: T_actors is never below what the learner knew; or, where the server loses nothing,
    below what it was. The agent's updates go back to the last snapshot at most.
    """
    now = read_clocks(stage)
    least = before.known_steps if _may_lose(stage, kind) else before.steps
    check(now.steps >= least, f"T_actors went back from {least} to {now.steps} by {kind}")
    back = before.updates - now.updates
    check(kind in ("kill_learner", "kill_rank") or back <= 0, f"{back} updates are lost by {kind}")


def _may_lose(stage: Stage, kind: str) -> bool:
    return kind == "kill_redis" and stage.mode not in LOSES_NOTHING


def check_settled(stage: Stage) -> None:
    """Nothing is played any more: all that was pushed is accounted for, by the learner and Redis alike."""
    if stage.has_replay:
        check_priorities(stage)
    else:
        pushed, learned = stage.per_actor("pushed"), stage.per_actor("learned")
        check(pushed == learned, f"rollouts {pushed} were pushed, {learned} are done with")


def check_bounds(stage: Stage) -> None:
    """Memory of every process."""
    for process in stage.workers:
        path = Path(f"/proc/{process.process.pid}/statm")
        resident = int(path.read_text().split()[1]) * 4096 if path.exists() else 0
        check(resident < MAX_PROCESS_BYTES, f"{process.log.name} takes {resident:,} bytes")
    used = stage.client.info("memory")["used_memory"]
    check(used < MAX_REDIS_BYTES, f"Redis takes {used:,} bytes")


def check_priorities(stage: Stage) -> None:
    """The learner's tree and Redis have the same total, once nothing is played and all is written back."""
    rows = stage.client.hvals(KEYS.priorities)
    leaves = [np.frombuffer(row, np.float32, offset=CHUNK_ID.size) for row in rows]
    stored = float(np.concatenate(leaves).sum(dtype=np.float64))
    told = read_statuses(stage.client, KEYS)["learner"]["total_priority"]
    check(isinstance(told, float) and abs(told - stored) <= 1e-6 * stored, f"tree {told}, Redis {stored}")


def check_files(stage: Stage) -> None:
    """Each episode once and none left out; a snapshot that can be read; nothing half written."""
    with (stage.results / "probe_catch.csv").open() as file:
        rows = [(int(row["actor"]), int(row["sequence"])) for row in csv.DictReader(file)]
    for actor in {actor for actor, _ in rows}:
        numbers = sorted(number for owner, number in rows if owner == actor)
        check(len(set(numbers)) == len(numbers), f"actor {actor}'s episodes have repeats")
        missing = sorted(set(range(1, max(numbers) + 1)) - set(numbers))
        check(not missing, f"actor {actor}'s episodes {missing[:5]} are missing")
    (path,) = last_models(stage.results, "probe_catch")
    snapshot = load_snapshot(path)
    check(snapshot["t_actors"] > 0 and snapshot["updates"] > 0, f"{path} is of a run that did nothing")
    half = [path.name for path in stage.results.iterdir() if path.suffix == ".tmp"]
    check(not half, f"{half} were left half written")


def check_end(stage: Stage) -> None:
    """After everybody was asked to end."""
    check(not stage.orphans(), f"processes {stage.orphans()} are still there")
    for process in stage.workers:
        words = process.log.read_text(errors="replace")
        check("Traceback" not in words, f"{process.log.name} has a traceback: {words[-3000:]}")
        code = process.process.returncode  # SIGTERM ends a process that has only just been started again
        check(code in (0, -signal.SIGTERM), f"{process.log.name} ended with {code}: {words[-2000:]}")
