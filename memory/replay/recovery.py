"""What the replay's learner does at a start, and where chunks are missing or damaged."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from memory.chunks.chunk import CHUNK_ID, NAMELESS, chunk_id_of
from memory.replay.priorities import Ring
from memory.runs.counters import FIELDS, Counters, parse_counts, read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client

log = logging.getLogger(__name__)

SIZES_ASKED = 100
MOST_DIGITS = 19
"""Digits from which on a name is taken for no chunk's id: ids are below 2^63, which has 19."""


def rebuild(ring: Ring, client: Client, keys: Keys) -> None:
    """Fill an empty ring from the priorities in Redis."""
    ring.newest = read_counters(client, keys).last_chunk
    scanned = client.hscan_iter(keys.priorities, count=1000)
    rows = {chunk_id: row for _, row in scanned if (chunk_id := chunk_id_of(row)) <= ring.newest}
    rows.pop(NAMELESS, None)
    ring.place(list(rows), [row[CHUNK_ID.size :] for row in rows.values()])


def leave_out(ring: Ring, chunk_id: int, why: Exception) -> None:
    """Never draw a damaged chunk again."""
    log.warning("Chunk %d is left out: %s", chunk_id, why)
    ring.left_out += 1
    slot = (chunk_id - 1) % len(ring.ids)
    if ring.ids[slot] == chunk_id:  # no newer chunk has arrived since it was requested
        ring.tree.set(ring.leaves_of(slot), 0.0)
        ring.dirty.add(slot)  # or the next learner would draw it again


def empty_missing(ring: Ring, client: Client, keys: Keys) -> NDArray[np.int64]:
    """Empty the leaves of chunks that Redis lost: another client deleted them, or the server evicts.

    Returns:
        Their slots.
    """
    with client.pipeline(transaction=True) as pipeline:
        pipeline.hkeys(keys.chunks)
        pipeline.hmget(keys.counters, list(FIELDS))
        names, values = pipeline.execute()
    held = [int(name) for name in names if name.isdigit() and len(name) < MOST_DIGITS]
    replaced = max(Counters(*parse_counts(values)).last_chunk - len(ring.ids), 0)  # ids up to here
    missing = np.flatnonzero((ring.ids > replaced) & ~np.isin(ring.ids, held))
    if missing.size:
        log.warning(
            "Redis lost %d of %d chunks that nothing here removed (check its maxmemory-policy, and who else"
            " writes there): learning continues with the others.",
            missing.size,
            ring.filled_slots,
        )
    ring.left_out += int(missing.size)
    ring.tree.set(ring.leaves_of(missing), 0.0)
    ring.dirty.update(missing.tolist())
    return missing


def mean_chunk_bytes(ring: Ring, client: Client, keys: Keys) -> float:
    """Mean size of a stored chunk, from up to SIZES_ASKED of them; 0 when there is none."""
    ids = ring.ids[np.flatnonzero(ring.ids)[:SIZES_ASKED]].tolist()
    with client.pipeline(transaction=False) as pipeline:
        for chunk_id in ids:
            pipeline.hstrlen(keys.chunks, chunk_id)
        sizes = pipeline.execute()
    return float(np.mean(sizes)) if sizes else 0.0
