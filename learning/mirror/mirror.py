"""Which chunks of the ring are mirrored, and where their transitions find their frames."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from learning.mirror.frames import FrameRing
from memory.chunks.chunk import NAMELESS, Chunk, ChunkLimits, ChunkShape, chunk_from_bytes
from memory.chunks.codec import CodecError
from memory.replay.batch import Batch
from memory.replay.priorities import Draw

STEPS_PER_END = 4
"""Steps of a mirrored chunk per episode's end that there is room for; a chunk with more ends stays in Redis
alone.
"""


@dataclass(frozen=True)
class MirrorShape:
    """How large a mirror is."""

    slots: int  # of the ring of chunks
    chunk: ChunkShape
    limits: ChunkLimits

    @property
    def room(self) -> int:
        """Frames of a chunk that there are rows for."""
        chunk = self.chunk
        between = chunk.chunk_length // STEPS_PER_END  # the last frames of episodes that end in it
        return chunk.history_length - 1 + chunk.chunk_length + chunk.multi_step + between

    @property
    def frame_bytes(self) -> int:
        """That all frames take."""
        frame = math.prod(self.limits.frame_shape) * np.dtype(self.limits.frame_dtype).itemsize
        return (self.slots * self.room + 1) * frame


class Mirror:
    """Chunks whose frames are on the device: a slot of the ring has `room` rows there. What else a batch
    needs of them is in columns here, by leaf.
    """

    def __init__(self, shape: MirrorShape, device: torch.device) -> None:
        """Nothing is mirrored."""
        self._shape, self._length = shape, shape.chunk.chunk_length
        leaves, limits = shape.slots * self._length, shape.limits
        self._seen = np.full(shape.slots, NAMELESS, np.int64)  # the last chunk of each slot that came
        self._ids = np.full(shape.slots, NAMELESS, np.int64)  # that is mirrored
        self._transitions = np.zeros(shape.slots, np.int64)  # M
        self._places = np.zeros((leaves, 4), np.uint16)
        self._targets = np.zeros((leaves, 2), np.float32)
        self._actions = np.zeros(leaves, np.int64)
        if limits.num_actions is None:
            self._actions = np.zeros((leaves, len(limits.action_low or ())), np.float32)
        self._frames = FrameRing(shape.slots * shape.room, limits.frame_shape, limits.frame_dtype, device)

    @property
    def chunks(self) -> int:
        """Mirrored."""
        return int(np.count_nonzero(self._ids))

    def unseen(self, ids: NDArray[np.int64]) -> list[int]:
        """Those of the chunks in the ring's slots, `ids` [slots], that `take` was not given yet."""
        new: list[int] = ids[(ids != NAMELESS) & (ids != self._seen)].tolist()
        return new

    def take(self, chunk_id: int, data: bytes | None) -> None:
        """Mirror a packed chunk, unless it is gone (None), damaged or has too many frames."""
        slot = (chunk_id - 1) % len(self._ids)
        self._seen[slot], self._ids[slot] = chunk_id, NAMELESS
        if data is None:
            return
        try:
            chunk = chunk_from_bytes(data)
            if len(chunk.rewards) > self._shape.room:
                return
            frames = chunk.frames
            self._shape.limits.check_arrays(frames, chunk.a_tm1)
        except CodecError:  # said when it is drawn, which is then from Redis
            return
        if not is_sound(chunk):
            return
        count, leaf = min(chunk.transitions, self._length), slot * self._length
        for column, values in (
            (self._places, chunk.places),
            (self._targets, chunk.targets),
            (self._actions, chunk.a_tm1),
        ):
            column[leaf : leaf + count] = values[:count]
        self._frames.write(slot * self._shape.room, frames)
        self._ids[slot], self._transitions[slot] = chunk_id, count

    def batch(self, draw: Draw) -> Batch | None:
        """The drawn transitions, gathered on the device; None where the mirror lacks one of them.

        The batch's own states are empty: agents have them from `agents.parts.learning.batch_to_device`.
        """
        slots = draw.leaf // self._length
        if not ((self._ids[slots] == draw.chunk_id) & (draw.offsets < self._transitions[slots])).all():
            return None
        newest_tm1, newest_t, depth_tm1, depth_t = self._places[draw.leaf].T.astype(np.int64)
        first = slots * self._shape.room
        nothing = np.empty((len(slots), 0), self._shape.limits.frame_dtype)
        r_t, discount_t = self._targets[draw.leaf].T.copy()
        columns = nothing, self._actions[draw.leaf], r_t, discount_t, nothing
        batch = Batch(*columns, weights=draw.weights, leaf=draw.leaf, chunk_id=draw.chunk_id)
        rows = self._rows(first + newest_tm1, depth_tm1), self._rows(first + newest_t, depth_t)
        return self._frames.staged(batch, *rows)

    def _rows(self, newest: NDArray[np.int64], depth: NDArray[np.int64]) -> NDArray[np.int64]:
        """[B, H] of the frames up to the `newest` [B]; blank before the `depth` [B] ones of the episode."""
        age = np.arange(self._shape.chunk.history_length)[::-1]
        return np.where(age < depth[:, None], newest[:, None] - age, self._frames.blank)


def is_sound(chunk: Chunk) -> bool:
    """Whether each of its transitions would be read (`kernels.read_chunks.read_transitions`)."""
    newest_tm1, newest_t, depth_tm1, depth_t = chunk.places.T.astype(np.int64)
    r_t, discount_t = chunk.targets.T
    stacks_exist = (depth_tm1 > 0) & (depth_tm1 <= newest_tm1 + 1) & (depth_t > 0) & (depth_t <= newest_t + 1)
    follow = (newest_tm1 < newest_t) & (newest_t < len(chunk.rewards))
    targets = np.isfinite(r_t) & (discount_t >= -1) & (discount_t <= 1)
    return bool((stacks_exist & follow & targets).all())
