"""Fills the replay of a run whose Redis holds none: from an event log, or from the dump of --save-replay.

The learner pushes the chunks itself, before it loads its replay. Chunks of an event log are cut by the run's
own n, gamma, clip and history. None of their transitions count in T_actors: nobody played them in this run.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from event_log.reader import Progress, check_header, read_header, read_pieces
from event_log.records import LogHeader, Piece
from learning.learner import LearnerSlot
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import ChunkShape, Draft
from memory.chunks.codec import Meta
from memory.chunks.step_log import Moments
from memory.replay.dump import CHUNKS_PER_READ, DumpError, dump_records, read_dump
from memory.replay.priorities import FIRST_LEAF
from memory.replay.replay import ReplayShape
from memory.runs.lease import Lease
from memory.runs.push import ChunkPusher, LostLease, Packet, StaleEpoch
from memory.server.connection import Interrupted, Patience
from reporting.atomic import atomic_file

log = logging.getLogger(__name__)

PRESEED_ACTOR = -1
"""Under whose lease and sequence the chunks are pushed: no actor's."""
PUSH_BYTES, PUSH_CHUNKS = 1 << 22, 256
"""What is packed and then pushed at once, at most: little beside this process's memory."""
LOG_EVERY_S = 5.0


class FileProgress:
    """Logs every few seconds which share of a file is done."""

    def __init__(self, path: Path, doing: str = "Preseeding the replay") -> None:
        self._path, self._doing = path, doing
        self._logged_at = time.monotonic()

    def __call__(self, share: float) -> None:
        """`share` of the file is done."""
        if time.monotonic() - self._logged_at > LOG_EVERY_S:
            log.info("%s: %.0f %% of %s.", self._doing, 100 * share, self._path)
            self._logged_at = time.monotonic()


@contextmanager
def _own_pusher(slot: LearnerSlot, slots: int) -> Iterator[Callable[[list[Packet]], None]]:
    """A function with which the learner pushes packets itself, into a ring of `slots` chunks.

    It raises Interrupted, LostLease, or a redis error once patience is over.
    """
    client, keys, patience = slot.client, slot.keys, slot.patience
    lease = Lease(client, keys.actor_lease(PRESEED_ACTOR))
    with lease.acquire("preseeding learner", patience.stopped):
        pusher = ChunkPusher(client, keys, PRESEED_ACTOR, lease.token, slot.epoch, slots, patience.seconds)
        yield lambda packets: _push(pusher, packets, patience)


def _push(pusher: ChunkPusher, packets: list[Packet], patience: Patience) -> None:
    if patience.stopped():
        raise Interrupted("Stopped while the replay was filled.")
    try:
        pusher.push(packets, patience.stopped)
    except StaleEpoch as stale:
        raise LostLease("Another learner has begun while the replay was filled.") from stale


class ReplayDump:
    """`replay_<game>_<T_actors>.dump` in a folder; only the newest is kept."""

    def __init__(
        self,
        folder: Path,
        file_name: str,
        slot: LearnerSlot,
        shape: ReplayShape,
        layout: Mapping[str, object],
    ) -> None:
        """`layout`: settings without which the chunks mean nothing."""
        self._folder, self._file_name = folder, file_name
        self._slot, self._shape, self._layout = slot, shape, layout

    def save(self, t_actors: int) -> None:
        """Write what Redis holds, then remove the older dumps.

        Raises a redis error, or OSError: the older dump is then still there.
        """
        path = self._folder / f"replay_{self._file_name}_{t_actors}.dump"
        older = [old for old in self._found() if old != path]
        run, shape = (self._slot.client, self._slot.keys), self._shape
        progress = FileProgress(path, "Saving the replay")
        records = dump_records(*run, shape.slots, self._layout, shape.chunk_length, progress)
        with atomic_file(path) as file:
            file.writelines(records)
        for old in older:
            old.unlink(missing_ok=True)
        log.info("Saved the replay to %s (%s MB).", path, f"{path.stat().st_size / 1e6:,.1f}")

    def restore(self) -> None:
        """Push the newest dump into the run's empty replay, if there is one.

        As much of a damaged one is used as is whole.

        Raises:
          Interrupted, LostLease, or a redis error once patience is over.
        """
        found = self._found()
        if not found:
            return
        path, chunks = found[0], 0
        with path.open("rb") as file, _own_pusher(self._slot, self._shape.slots) as push:
            for packets in self._packets(path, file):
                push(packets)
                chunks += len(packets)
        log.info("Restored %s chunks of the replay from %s.", f"{chunks:,}", path)

    def _packets(self, path: Path, file: BinaryIO) -> Iterator[list[Packet]]:
        """As many at a time as are pushed at once; the log names what cannot be read."""
        size, packets = path.stat().st_size, list[Packet]()
        progress = FileProgress(path, "Restoring the replay")
        try:
            for packet in read_dump(file, size, self._layout, self._shape.chunk_length):
                packets.append(packet)
                if len(packets) == CHUNKS_PER_READ:
                    yield packets
                    packets = []
                    progress(file.tell() / size)
        except DumpError as error:
            log.warning("The replay in %s cannot be restored any further. %s.", path, error)
        if packets:
            yield packets

    def _found(self) -> list[Path]:
        """The dumps of this game, the one of most steps first."""
        pattern = re.compile(re.escape(f"replay_{self._file_name}_") + r"(\d+)\.dump")
        paths = [
            (int(m[1]), path) for path in self._folder.glob("*.dump") if (m := pattern.fullmatch(path.name))
        ]
        return [path for _, path in sorted(paths, reverse=True)]


def preseed(
    path: Path, header: LogHeader, slot: LearnerSlot, shape: ChunkShape, slots: int, progress: Progress
) -> int:
    """Push all that the event log at `path` holds, with the priorities of random warm-up.

    Args:
      header: what the log must begin with.
      slots: chunks that the replay holds.
      progress: called with the share of the file that is done.

    Returns:
      The number of transitions pushed.

    Raises:
      EventLogError when the log is not one of `header`, Interrupted, LostLease, or a redis error once
      patience is over.
    """
    check_header(path, read_header(path), header)
    with _own_pusher(slot, slots) as push:
        meta: Meta = {"run": slot.keys.run, "epoch": slot.epoch, "actor": PRESEED_ACTOR}
        chunks = transitions = 0
        for drafts in _portions(_drafts(path, shape, meta, progress)):
            push([_packet(draft, shape) for draft in drafts])
            if chunks <= slots < chunks + len(drafts):
                log.warning("%s holds more than the replay: its oldest transitions are overwritten.", path)
            chunks += len(drafts)
            transitions += sum(draft.transitions for draft in drafts)
    return transitions


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
