"""What a run's replay lacks, and how it is filled: from an event log, or from the dump of --save-replay.

The learner pushes the chunks itself, before it loads its replay. Chunks of an event log are cut by the run's
own n, gamma, clip and history. None of their transitions count in T_actors: nobody played them in this run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from event_log.reader import Progress, check_header, read_header, read_pieces
from event_log.records import LogHeader, Piece
from learning.saved.snapshot import Snapshot
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import ChunkShape
from memory.chunks.codec import Meta
from memory.chunks.unfinished import Draft, Moments
from memory.replay.dump import DumpError, dump_records, read_dump
from memory.replay.priorities import FIRST_LEAF
from memory.replay.shape import ReplayShape
from memory.runs.lease import Lease
from memory.runs.push import ChunkPusher, Packet
from memory.runs.run import LearnerSlot
from memory.runs.scripts import LostLease, Sender, StaleEpoch
from memory.server.patience import Interrupted
from reporting.atomic import atomic_file
from reporting.model_files import numbered_files

log = logging.getLogger(__name__)

PRESEED_ACTOR = -1
"""Number of the actor under whose lease and sequence the chunks are pushed: no actor's."""
CHUNKS_PER_PUSH = 256
"""Chunks that are packed and then pushed at once: little beside this process's memory."""
LOG_EVERY_S = 5.0
"""Seconds between two lines on how much of a file is done (our choice)."""


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


def wanted_slots(snapshot: Snapshot | None, shape: ReplayShape) -> int:
    """Chunks that the replay held, or was to gather before learning continued, when `snapshot` was made."""
    return 0 if snapshot is None else min(int(snapshot["replay_slots"]), shape.all_slots)


def unlearned_steps(snapshot: Snapshot | None, t_actors: int, slack: int) -> int:
    """Steps not learned from yet when `snapshot` was made, and those played since; at most `slack`."""
    if snapshot is None:
        return 0
    return min(int(snapshot["owed_steps"]) + t_actors - int(snapshot["t_actors"]), slack)


def missing_transitions(
    snapshot: Snapshot | None, filled_slots: int, shape: ReplayShape, learn_start: int
) -> int:
    """Transitions to gather before learning continues.

    Once learning has begun, the replay must be as full as when the snapshot was made; before, learn_start.
    """
    if snapshot is None or not snapshot["updates"]:
        return max(learn_start - filled_slots * shape.chunk_length, 0)
    return max(wanted_slots(snapshot, shape) - filled_slots, 0) * shape.chunk_length


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
        self._folder, self._prefix = folder, f"replay_{file_name}_"
        self._slot, self._shape, self._layout = slot, shape, layout

    def save(self, t_actors: int) -> None:
        """Write what Redis holds, then remove the older dumps.

        Raises a redis error, or OSError: the older dump is then still there.
        """
        path = self._folder / f"{self._prefix}{t_actors}.dump"
        older = [old for old in numbered_files(self._folder, self._prefix, ".dump") if old != path]
        progress = FileProgress(path, "Saving the replay")
        run, shape = (self._slot.client, self._slot.keys), self._shape
        records = dump_records(*run, shape.slots, self._layout, shape.chunk_length, progress)
        with atomic_file(path) as file:
            file.writelines(records)
        for old in older:
            old.unlink(missing_ok=True)
        log.info("Saved the replay to %s (%s MB).", path, f"{path.stat().st_size / 1e6:,.1f}")

    def restore(self) -> None:
        """Push the newest dump into the run's empty replay, if there is one: as much of it as is whole.

        Raises:
            Interrupted, LostLease, or a redis error once patience is over.
        """
        for path in numbered_files(self._folder, self._prefix, ".dump")[:1]:
            with path.open("rb") as file:
                pushed = _push_all(self._slot, self._shape.slots, self._packets(path, file))
            log.info("Restored %s chunks of the replay from %s.", f"{pushed.chunks:,}", path)

    def _packets(self, path: Path, file: BinaryIO) -> Iterator[Packet]:
        """The log names what cannot be read."""
        size, progress = path.stat().st_size, FileProgress(path, "Restoring the replay")
        try:
            for packet in read_dump(file, size, self._layout, self._shape.chunk_length):
                yield packet
                progress(file.tell() / size)
        except DumpError as error:
            log.warning("The replay in %s cannot be restored any further. %s.", path, error)


def preseed(
    path: Path, header: LogHeader, slot: LearnerSlot, shape: ChunkShape, slots: int, progress: Progress
) -> int:
    """Push all that the event log at `path` holds, with the priorities of random warm-up.

    Args:
        header: What the log must begin with.
        slots: Chunks that the replay holds.
        progress: Called with the share of the file that is done.

    Returns:
        The number of transitions pushed.

    Raises:
        EventLogError: The log is not one of `header`.
        Interrupted, LostLease, or a redis error once patience is over.
    """
    check_header(path, read_header(path), header)
    meta: Meta = {"run": slot.keys.run, "epoch": slot.epoch, "actor": PRESEED_ACTOR}
    drafts = _drafts(path, shape, meta, progress)
    pushed = _push_all(slot, slots, (_packet(draft, shape.chunk_length) for draft in drafts))
    if pushed.chunks > slots:
        log.warning("%s holds more than the replay: its oldest transitions are overwritten.", path)
    return pushed.transitions


def _packet(draft: Draft, chunk_length: int) -> Packet:
    """`transitions` is 0, because T_actors must not count these steps."""
    leaves = np.zeros(chunk_length, np.float32)
    leaves[: draft.transitions] = FIRST_LEAF
    return Packet(draft.data, leaves, transitions=0)


class _Pushed(NamedTuple):
    chunks: int
    transitions: int


def _push_all(slot: LearnerSlot, slots: int, packets: Iterator[Packet]) -> _Pushed:
    """The learner pushes them itself, into a ring of `slots` chunks.

    Raises Interrupted, LostLease, or a redis error once patience is over.
    """
    client, keys, patience = slot.client, slot.keys, slot.patience
    chunks = transitions = 0
    with Lease(client, keys.actor_lease(PRESEED_ACTOR)).acquire(
        "preseeding learner", patience.stopped, patience.seconds
    ) as lease:
        sender = Sender(client, keys, PRESEED_ACTOR, lease.token, slot.epoch)
        pusher = ChunkPusher(sender, slots, patience)
        while portion := list(islice(packets, CHUNKS_PER_PUSH)):
            if patience.stopped():
                raise Interrupted("Stopped while the replay was filled.")
            try:
                pusher.push(portion)
            except StaleEpoch as stale:
                raise LostLease("Another learner has begun while the replay was filled.") from stale
            chunks += len(portion)
            transitions += sum(int(np.count_nonzero(packet.leaves)) for packet in portion)
    return _Pushed(chunks, transitions)


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
