"""What must hold after every fault, and at the end."""

from __future__ import annotations

import csv
import signal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from learning.saved.snapshot import load_snapshot
from memory.chunks.chunk import CHUNK_ID, chunk_from_bytes, chunk_id_of
from memory.rollouts.blocks import NAMED, rollout_from_bytes
from memory.runs.counters import FIELDS, Counters, parse_counts
from memory.runs.run import Place
from memory.runs.shards import own_steps
from reporting.model_files import last_models
from tests.faults.processes import Violation
from tests.faults.servers import REPLICAS
from tests.faults.stage import Stage

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

    accepted: list[int]  # chunks of each shard, or rollouts
    steps: int  # T_actors
    known_steps: int  # T_actors as the learner last said
    updates: int  # as the learner last said


def read_clocks(stage: Stage) -> Clocks:
    """As they are now."""
    known, updates = int(stage.told("t_actors")), int(stage.told("updates"))
    return Clocks(stage.accepted, stage.counters[0].steps, known, updates)


def check_store(stage: Stage) -> None:
    """What is held is whole, and counts once."""
    if not stage.has_replay:
        check_rollouts(stage)
        return
    for shard in range(len(stage.places)):
        check_chunks(stage, shard)


def _rollouts_at(place: Place) -> list[Any]:
    with place.client.pipeline(transaction=True) as pipeline:
        pipeline.lrange(place.keys.rollouts, 0, -1)
        pipeline.hgetall(place.keys.counters)
        return list(pipeline.execute())


def check_rollouts(stage: Stage) -> None:
    """Every rollout that waits is whole and named; no more are outstanding than may be."""
    waiting, fields = stage.patience(_rollouts_at, stage.places[0])
    counts = {name.decode(): int(value) for name, value in fields.items()}
    for value in waiting:
        actor, sequence = NAMED.unpack_from(value)
        rollout_from_bytes(value[NAMED.size :])
        check(sequence <= counts[f"pushed:{actor}"], f"rollout {sequence} of actor {actor} is not counted")
    for name, pushed in counts.items():
        if name.startswith("pushed:"):
            outstanding = pushed - counts.get(name.replace("pushed", "learned"), 0)
            check(0 <= outstanding <= OUTSTANDING, f"{outstanding} rollouts are outstanding: {name}")


def _chunks_at(place: Place) -> list[Any]:
    with place.client.pipeline(transaction=True) as pipeline:
        pipeline.hgetall(place.keys.counters)
        pipeline.hmget(place.keys.counters, list(FIELDS))
        pipeline.hgetall(place.keys.chunks)
        pipeline.hgetall(place.keys.priorities)
        return list(pipeline.execute())


def check_chunks(stage: Stage, shard: int) -> None:
    """Every chunk of a shard is whole, has its priorities, and counts once."""
    fields, values, chunks, priorities = stage.patience(_chunks_at, stage.places[shard])
    counters, removed = Counters(*parse_counts(values)), stage.removed[shard]
    pushed = sum(int(value) for name, value in fields.items() if name.startswith(b"pushed:"))
    newest, ids = counters.last_chunk, sorted(map(int, chunks))
    check(not ids or ids[-1] <= newest, f"chunk {ids[-1:]} of shard {shard} is not counted: {newest} are")
    missing = set(range(1, newest + 1)) - set(ids) - removed
    check(not missing, f"chunks {sorted(missing)[:5]} of {newest} in shard {shard} are missing")
    # An actor's numbers go on where the server has lost some of its pushes.
    whole = pushed == newest or (_forgets(stage, shard) and pushed > newest)
    check(whole, f"{pushed} pushes were accepted, {newest} chunks are counted in shard {shard}")
    named = {chunk_id_of(row) for row in priorities.values()}
    check(set(ids) <= named <= set(ids) | removed, "chunks and priorities do not have the same ids")
    for value in chunks.values():
        chunk_from_bytes(value)
    if stage.mode in LOSES_NOTHING and not any(stage.removed):
        held = sum(int(np.count_nonzero(_leaves_in(row))) for row in priorities.values())
        check(
            held == own_steps(counters), f"shard {shard}: {held} transitions, {own_steps(counters)} counted"
        )


def _forgets(stage: Stage, shard: int) -> bool:
    """Whether a shard may come back with less than it had, and its run go on there."""
    return stage.mode in ("rdb", REPLICAS) or (stage.mode == "none" and shard > 0)


def _leaves_in(row: bytes) -> NDArray[np.float32]:
    return np.frombuffer(row, np.float32, offset=CHUNK_ID.size)


def check_nothing_lost(stage: Stage, before: Clocks, accepted: list[int], kind: str) -> int:
    """Chunks or rollouts that were acknowledged before a fault and are gone after it; only a server may lose
    some.
    """
    lost = sum(max(held - left, 0) for held, left in zip(before.accepted, accepted, strict=True))
    check(lost == 0 or _may_lose(stage, kind), f"{lost} that were acknowledged are lost by {kind}")
    return lost


def check_clocks(stage: Stage, before: Clocks, kind: str) -> None:
    """Once all goes on: T_actors is never below what the learner knew; or, where the first server loses
    nothing, below what it was. The agent's updates go back to the last snapshot at most.
    """
    now = read_clocks(stage)
    first_loses = _may_lose(stage, kind) and kind != "kill_shard"
    least = before.known_steps if first_loses else before.steps
    check(now.steps >= least, f"T_actors went back from {least} to {now.steps} by {kind}")
    back = before.updates - now.updates
    check(kind in ("kill_learner", "kill_rank") or back <= 0, f"{back} updates are lost by {kind}")


def _may_lose(stage: Stage, kind: str) -> bool:
    """A replica may lack what its master had just confirmed."""
    return kind in ("kill_redis", "kill_shard", "failover") and stage.mode not in LOSES_NOTHING


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
    for place in stage.places:
        used = stage.patience(place.client.info, "memory")["used_memory"]
        check(used < MAX_REDIS_BYTES, f"Redis takes {used:,} bytes")


def check_priorities(stage: Stage) -> None:
    """The learner's trees and Redis have the same total, once nothing is played and all is written back."""
    rows = [
        row for place in stage.places for row in stage.patience(place.client.hvals, place.keys.priorities)
    ]
    stored = float(np.concatenate([_leaves_in(row) for row in rows]).sum(dtype=np.float64))
    told = stage.statuses["learner"]["total_priority"]
    check(isinstance(told, float) and abs(told - stored) <= 1e-6 * stored, f"trees {told}, Redis {stored}")


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
