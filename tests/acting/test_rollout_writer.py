"""What an actor of an on-policy run packs."""

from __future__ import annotations

import numpy as np

from acting.player import VectorStep
from acting.rollout_writer import RolloutShape, RolloutWriter
from agents.base import RolloutActing
from memory.rollouts.blocks import PushedRollout, rollout_from_bytes

LENGTH, ENVIRONMENTS = 3, 2


def played(sequence: int, rollouts: int) -> list[PushedRollout]:
    """Of an actor that was started after the rollout `sequence` of its number."""
    writer = RolloutWriter(RolloutShape(LENGTH, 1), ENVIRONMENTS, sequence, {"actor": 0})
    none, all_of_them = np.zeros(ENVIRONMENTS, np.bool_), np.ones(ENVIRONMENTS, np.bool_)
    numbers = np.zeros(ENVIRONMENTS, np.float32)
    acting = RolloutActing(numbers.astype(np.int64), numbers, numbers[:, None])
    frames = np.zeros((ENVIRONMENTS, 4), np.uint8)
    step = VectorStep(
        frames, acting, acting.a_t, numbers.astype(np.float64), none, none, all_of_them, frames, {}
    )
    packets = [packet for _ in range(LENGTH * rollouts) for packet in writer.add(step)]
    return [rollout_from_bytes(packet.data) for packet in packets]


def test_rollouts_continue_those_of_the_same_process_alone() -> None:
    """An actor that is started again counts on, and its environments begin anew."""
    before, after = played(0, rollouts=2), played(2, rollouts=2)
    assert [each.sequence for each in (*before, *after)] == [1, 2, 3, 4]
    assert [each.begins_anew for each in (*before, *after)] == [True, False, True, False]
    lasts = (None, 1, 2, 3)
    continued = [each.following(last).continues for each, last in zip((*before, *after), lasts, strict=True)]
    assert np.array_equal(continued, np.repeat([[False], [True], [False], [True]], ENVIRONMENTS, axis=1))
