"""Fills the replay of a new run from an event log, as if an actor had played what is in it.

Chunks are cut by the run's own n, gamma, clip and history. Their transitions do not count in T_actors: nobody
played them in this run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from event_log.reader import Progress, check_header, read_header, read_pieces
from event_log.records import LogHeader, Piece
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import ChunkShape, Draft
from memory.chunks.codec import Meta
from memory.chunks.step_log import Moments
from memory.replay.priorities import FIRST_LEAF
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import ChunkPusher, LostLease, Packet, StaleEpoch
from memory.server.connection import Client, Interrupted, Patience

log = logging.getLogger(__name__)

PRESEED_ACTOR = -1
"""Under whose lease and sequence the chunks are pushed: no actor's."""
PUSH_BYTES, PUSH_CHUNKS = 1 << 22, 256
"""What is packed and then pushed at once, at most: little beside this process's memory."""
SAY_EVERY_S = 5.0


class PreseedLines:
    """Progress in the process's log, every few seconds."""

    def __init__(self, path: Path, doing: str = "Preseeding the replay") -> None:
        self._path, self._doing = path, doing
        self._said_at = time.monotonic()

    def __call__(self, share: float) -> None:
        """`share` of the file is done; say so if it is time to."""
        if time.monotonic() - self._said_at > SAY_EVERY_S:
            log.info("%s: %.0f %% of %s.", self._doing, 100 * share, self._path)
            self._said_at = time.monotonic()


def preseed(
    path: Path,
    header: LogHeader,
    client: Client,
    keys: Keys,
    epoch: int,
    shape: ChunkShape,
    slots: int,
    patience: Patience,
    progress: Progress,
) -> int:
    """Push all that the event log at `path` holds, with the priorities of random warm-up; returns how many
    transitions that were.

    For the learner that has opened `epoch`, before it loads its replay of `slots` chunks. Raises
    EventLogError when the log is not one of `header`, Interrupted, LostLease, or a redis error once patience
    is over.
    """
    check_header(path, read_header(path), header)
    with learners_push(client, keys, epoch, slots, patience) as push:
        meta: Meta = {"run": keys.run, "epoch": epoch, "actor": PRESEED_ACTOR}
        chunks = transitions = 0
        for drafts in _portions(_drafts(path, shape, meta, progress)):
            push([_packet(draft, shape) for draft in drafts])
            if chunks <= slots < chunks + len(drafts):
                log.warning("%s holds more than the replay: its oldest transitions are overwritten.", path)
            chunks += len(drafts)
            transitions += sum(draft.transitions for draft in drafts)
    return transitions


@contextmanager
def learners_push(
    client: Client, keys: Keys, epoch: int, slots: int, patience: Patience
) -> Iterator[Callable[[list[Packet]], None]]:
    """How a learner that has opened `epoch` pushes chunks itself, before it loads its replay of `slots`.

    The function raises Interrupted, LostLease, or a redis error once patience is over.
    """
    lease = Lease(client, keys.actor_lease(PRESEED_ACTOR))
    with lease.acquire("preseeding learner", patience.stopped):
        pusher = ChunkPusher(client, keys, PRESEED_ACTOR, lease.token, epoch, slots, patience.seconds)
        yield lambda packets: _push(pusher, packets, patience)


def _push(pusher: ChunkPusher, packets: list[Packet], patience: Patience) -> None:
    if patience.stopped():
        raise Interrupted("Stopped while the replay was filled.")
    try:
        pusher.push(packets, patience.stopped)
    except StaleEpoch as stale:
        raise LostLease("Another learner has begun while the replay was filled.") from stale


def _packet(draft: Draft, shape: ChunkShape) -> Packet:
    """`transitions` of a packet are what T_actors grows by."""
    leaves = np.zeros(shape.chunk_length, np.float32)
    leaves[: draft.transitions] = FIRST_LEAF
    return Packet(draft.data, leaves, transitions=0)


def _portions(drafts: Iterator[Draft]) -> Iterator[list[Draft]]:
    """As many chunks at a time as are pushed at once."""
    portion, size = list[Draft](), 0
    for draft in drafts:
        portion.append(draft)
        size += len(draft.data)
        if size >= PUSH_BYTES or len(portion) == PUSH_CHUNKS:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _drafts(path: Path, shape: ChunkShape, meta: Meta, progress: Progress) -> Iterator[Draft]:
    """All chunks of the log, its environments as they are mixed in it."""
    streams: dict[int, _Stream] = {}
    for piece in read_pieces(path, progress):
        stream = streams.setdefault(piece.environment, _Stream(shape, meta))
        yield from stream.add(piece)
    for stream in streams.values():
        yield from stream.flush()


class _Step(NamedTuple):
    frame: NDArray[Any]  # [*frame]
    a_t: NDArray[Any] | np.integer[Any]
    reward: float


class _Stream:
    """One environment's pieces on their way into chunks; its newest step waits for the frame behind it."""

    def __init__(self, shape: ChunkShape, meta: Meta) -> None:
        self._builder = ChunkBuilder(shape, meta=meta)
        self._episode = -1
        self._waiting: _Step | None = None

    def add(self, piece: Piece) -> list[Draft]:
        """The chunks that `piece` completes."""
        drafts = self.flush() if self._waiting and piece.episode != self._episode else []
        self._episode = piece.episode
        for step in map(_Step, piece.frames, piece.a_t, piece.r_t.tolist()):
            drafts += self._take_waiting(False, False)
            self._waiting, self._newest = step, step.frame
        return drafts + self._close(piece) if piece.closes else drafts

    def flush(self) -> list[Draft]:
        """Nothing more comes of this episode: what is left, without a step whose next frame nobody saw."""
        self._waiting = None
        return self._builder.flush(self._newest[None])

    def _close(self, piece: Piece) -> list[Draft]:
        drafts = self._take_waiting(piece.terminated, piece.truncated)
        self._newest = piece.frames[-1]
        return drafts + self._builder.add(Moments.ended(self._newest[None]))

    def _take_waiting(self, terminated: bool, truncated: bool) -> list[Draft]:
        if self._waiting is None:
            return []
        step, self._waiting = self._waiting, None
        row = np.array([step.reward]), np.array([terminated]), np.array([truncated]), np.array([True])
        return self._builder.add(Moments(step.frame[None], np.asarray(step.a_t)[None], *row))
