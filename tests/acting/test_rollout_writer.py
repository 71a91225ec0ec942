"""What an actor of an on-policy run packs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acting.links.weights import ActingWeights
from acting.player import VectorStep
from acting.rollout_writer import RolloutShape, RolloutWriter
from agents.base import RolloutActing
from memory.rollouts.blocks import PushedRollout, rollout_from_bytes

LENGTH, HISTORY, ENVIRONMENTS = 4, 3, 2
STEPS = 3 * LENGTH
AT_RANDOM = 2  # steps, before learning begins in the midst of the first rollout
AGES = [  # of the frames of each environment: one of them restarts in step 3, the other one in step 8
    [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8],
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3],
]


def _only(step: int, environment: int) -> NDArray[np.bool_]:
    """[STEPS, B], of which one is True."""
    marked = np.zeros((STEPS, ENVIRONMENTS), np.bool_)
    marked[step, environment] = True
    return marked


def _columns() -> dict[str, NDArray[Any]]:
    """What is played, by the names of a rollout's columns: [STEPS + 1, B, *frame], else [STEPS, B]."""
    rng = np.random.default_rng(0)
    grid = (STEPS, ENVIRONMENTS)
    return {
        "frames": np.arange(1, 1 + (STEPS + 1) * ENVIRONMENTS * 4, dtype=np.uint8).reshape(
            -1, ENVIRONMENTS, 4
        ),
        "a_t": rng.integers(0, 9, grid),
        "log_prob": rng.normal(size=grid).astype(np.float32),
        "rewards": rng.normal(size=grid),
        "terminated": _only(2, 0),
        "truncated": _only(7, 1),
        "active": ~(_only(3, 0) | _only(8, 1)),
    }


def _steps() -> list[VectorStep]:
    columns = _columns()
    frames, a_t, log_prob, *others = columns.values()
    actings = [RolloutActing(*row) for row in zip(a_t, log_prob, strict=True)]
    played = [None] * AT_RANDOM + actings[AT_RANDOM:]
    rows = zip(frames[:-1], played, a_t, *others, frames[1:], [{}] * STEPS, strict=True)
    return [VectorStep(*row) for row in rows]


def _packed(writer: RolloutWriter, steps: Iterable[VectorStep]) -> list[PushedRollout]:
    return [rollout_from_bytes(packet.data) for step in steps for packet in writer.add(step)]


def _writer(sequence: int = 0) -> RolloutWriter:
    """Of an actor that was started after the rollout `sequence` of its number."""
    return RolloutWriter(RolloutShape(LENGTH, HISTORY), ENVIRONMENTS, sequence, {"actor": 0})


def test_every_column_holds_what_was_played() -> None:
    """Over three rollouts and the ends of two episodes; a rollout that began at random counts as random."""
    writer, steps, played = _writer(), _steps(), _columns()
    for number in range(3):
        rows = range(number * LENGTH, (number + 1) * LENGTH)
        writer.weights_changed(ActingWeights({}, updates=10 + number, t_learner=0, epoch=7))
        (pushed,) = _packed(writer, steps[rows.start : rows.stop])
        assert (pushed.updates, pushed.weights_epoch) == (10 + number, 7)
        expected = {name: [column[t] for t in rows] for name, column in played.items()}
        seen = range(rows.start - HISTORY + 1, rows.stop + 1)
        expected["frames"] = [played["frames"][t] if t >= 0 else np.zeros((2, 4)) for t in seen]
        expected["ages"] = [[ages[t] for ages in AGES] for t in range(rows.start, rows.stop + 1)]
        if number == 0:
            expected["log_prob"] = [[0.0] * ENVIRONMENTS] * LENGTH
        expected |= {"looked": [number > 0] * 2, "stream": [0, 1], "continues": [False] * 2}
        expected["updates"] = [10 + number] * 2
        found = pushed.rollout._asdict()
        assert found.keys() == expected.keys()
        for name, column in found.items():
            np.testing.assert_array_equal(column, np.asarray(expected[name], column.dtype), err_msg=name)


def test_rollouts_continue_those_of_the_same_process_alone() -> None:
    """An actor that is started again counts on, and its environments begin anew."""
    steps = _steps()[: 2 * LENGTH]
    before, after = _packed(_writer(0), steps), _packed(_writer(2), steps)
    assert [each.sequence for each in (*before, *after)] == [1, 2, 3, 4]
    assert [each.begins_anew for each in (*before, *after)] == [True, False, True, False]
    lasts = (None, 1, 2, 3)
    continued = [each.following(last).continues for each, last in zip((*before, *after), lasts, strict=True)]
    assert np.array_equal(continued, np.repeat([[False], [True], [False], [True]], ENVIRONMENTS, axis=1))
