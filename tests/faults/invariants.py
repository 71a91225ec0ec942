"""What must hold after every fault, and at the end."""

from __future__ import annotations

import csv
import signal
from pathlib import Path

import numpy as np

from memory.chunk import chunk_from_bytes
from memory.counters import FIELDS, parse_counters
from memory.push import CHUNK_ID
from memory.status import read_all
from runtime.snapshot import last_models, load_snapshot
from tests.faults.stage import KEYS, Stage, Violation

MAX_PROCESS_BYTES, MAX_REDIS_BYTES = 1 << 30, 300 << 20
"""A learner of this size takes 0.4 GB, mostly PyTorch; the replay of an hour of this run some 100 MB."""
LOSES_NOTHING = ("everysec", "always")
"""A server that is killed, unlike its machine, has written all that it confirmed."""


def check(condition: bool, sentence: str) -> None:
    """Raises Violation."""
    if not condition:
        raise Violation(sentence)


def check_chunks(stage: Stage) -> int:
    """Every chunk is whole, has its priorities, and counts once; returns how many there are."""
    with stage.client.pipeline(transaction=True) as pipeline:
        pipeline.hgetall(KEYS.counters)
        pipeline.hmget(KEYS.counters, list(FIELDS))
        pipeline.hgetall(KEYS.chunks)
        pipeline.hgetall(KEYS.priorities)
        fields, values, chunks, priorities = pipeline.execute()
    pushed = sum(int(value) for name, value in fields.items() if name.startswith(b"pushed:"))
    newest = parse_counters(values).last_chunk
    ids = sorted(CHUNK_ID.unpack_from(value)[0] for value in chunks.values())
    check(ids == list(range(1, newest + 1)), f"{len(ids)} chunks under ids up to {newest}")
    # An actor's numbers go on where a dump has lost some of its pushes.
    whole = pushed == newest or (stage.mode == "rdb" and pushed > newest)
    check(whole, f"{pushed} pushes were accepted, {newest} chunks are counted")
    check(chunks.keys() == priorities.keys(), "chunks and priorities do not have the same slots")
    for slot, value in chunks.items():
        check(value[: CHUNK_ID.size] == priorities[slot][: CHUNK_ID.size], f"slot {slot!r} is torn")
        chunk_from_bytes(memoryview(value)[CHUNK_ID.size :])
    return newest


def check_nothing_lost(stage: Stage, before: int, after: int, kind: str) -> int:
    """Chunks that were acknowledged before a fault and are gone after it; only a server may lose some."""
    lost = max(before - after, 0)
    may_lose = kind == "kill_redis" and stage.mode not in LOSES_NOTHING
    check(lost == 0 or may_lose, f"{lost} acknowledged chunks are lost by {kind} in mode {stage.mode}")
    return lost


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
    told = read_all(stage.client, KEYS)["learner"]["total_priority"]
    check(isinstance(told, float) and abs(told - stored) <= 1e-6 * stored, f"tree {told}, Redis {stored}")


def check_files(stage: Stage) -> None:
    """Each episode once and none left out; a snapshot that can be read; nothing half written."""
    with (stage.results / "probe_catch.csv").open() as file:
        rows = [(int(row["actor"]), int(row["sequence"])) for row in csv.DictReader(file)]
    for actor in {actor for actor, _ in rows}:
        numbers = sorted(number for owner, number in rows if owner == actor)
        check(len(set(numbers)) == len(numbers), f"actor {actor}'s episodes have repeats")
        whole = numbers == list(range(1, len(numbers) + 1))
        check(whole or stage.mode == "rdb", f"actor {actor}'s episodes have gaps")  # a dump may lack some
    load_snapshot(last_models(stage.results, "probe_catch")[0])


def check_end(stage: Stage) -> None:
    """After everybody was asked to end."""
    check(not stage.orphans(), f"processes {stage.orphans()} are still there")
    for process in stage.workers:
        words = process.log.read_text(errors="replace")
        check("Traceback" not in words, f"{process.log.name} has a traceback: {words[-3000:]}")
        code = process.process.returncode  # SIGTERM ends a process that has only just been started again
        check(code in (0, -signal.SIGTERM), f"{process.log.name} ended with {code}")
