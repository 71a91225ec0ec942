"""Compiled loops over experience and their plain twins agree bit for bit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import kernels
from kernels import choice
from kernels.layouts import FAN_OUT, FARTHEST, GAP_BYTES, Rewards, Stacks, Steps, Streams, Taken
from kernels.read_chunks import unfold
from kernels.sum_tree import find_leaves, set_leaves
from kernels.write_chunks import cut_transitions, fold, note_changes, note_steps
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import UnsoundRow
from memory.chunks.reader import ChunkReader
from memory.replay.batch import Lookahead
from tests.kernel_choice import using
from tests.memory.reference import SHAPES, feed, random_episodes
from tests.memory.rows import drawn

ROOT = Path(kernels.__file__).parents[1]
QUICK = settings(max_examples=40, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def _kinds() -> Iterator[str]:
    for kind in choice.KINDS:
        with using(kind):
            assert choice.compiled_in_use() == (kind == "compiled")
            yield kind


def _same(found: list[Any]) -> None:
    """What each kind left, as trees of arrays, has the same types, shapes and bits."""
    one, other = found
    if isinstance(one, tuple | list):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            _same(list(pair))
    else:
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@QUICK
@given(st.integers(1, 600), SEEDS, st.integers(0, 40), st.floats(0, 1))
def test_sum_tree(capacity: int, seed: int, batch: int, share: float) -> None:
    """Leaves named twice, values of 0, none at all."""
    generator, found = np.random.default_rng(seed), []
    sizes, nodes = list[int](), capacity
    while nodes > 1 or not sizes:
        nodes = -(-nodes // FAN_OUT)
        sizes.append(nodes * FAN_OUT)
    starts = np.cumsum([0, *sizes])
    leaves = generator.integers(0, capacity, (2, batch))
    values = generator.exponential(size=(2, batch)) * (generator.random((2, batch)) < share)
    prefixes = generator.random(batch)
    for _ in _kinds():
        tree = np.zeros(starts[-1] + 1)
        more = [set_leaves(tree, starts, *update) for update in zip(leaves, values, strict=True)]
        drawn_leaves = find_leaves(tree, starts, prefixes * tree[-1]) if tree[-1] else None
        found.append([tree, more, [] if drawn_leaves is None else drawn_leaves])
    _same(found)


@QUICK
@given(
    words=st.integers(1, 200), kind=st.sampled_from(["<u4", "|u1"]), count=st.integers(1, 6),
    share=st.floats(0, 1), seed=SEEDS,
)  # fmt: skip
def test_frames_noted_folded_and_restored(words: int, kind: str, count: int, share: float, seed: int) -> None:
    generator, found = np.random.default_rng(seed), []
    changes = generator.integers(0, 256, (2, count, words)) * (generator.random((2, count, words)) < share)
    frames = np.bitwise_xor.accumulate(changes.astype(kind), axis=1)
    for _ in _kinds():
        newest, counts = frames[:, 0].copy(), np.zeros(2, np.int64)
        changed, places = np.zeros((2, count * words), kind), np.zeros((2, count * words), np.uint32)
        until = np.zeros((2, count), np.int64)
        for k in range(1, count):
            note_changes(frames[:, k], newest, changed, places, counts)
            until[:, k] = counts
        folded = [fold(frames[n, 0], changed[n], places[n], until[n]) for n in range(2)]
        data = np.concatenate((frames[0, 0].view(np.uint8), folded[0]))
        restored = np.zeros((count, words), kind)
        nothing = restored[:0]
        unfold(data, 0, frames[0, 0].nbytes, len(data), Stacks(0, nothing, count - 1, restored, nothing))
        np.testing.assert_array_equal(restored, frames[0])
        found.append([newest, counts, changed, places, until, folded])
    _same(found)


def test_changes_that_lie_farther_apart_than_a_gap() -> None:
    frames, found = np.zeros((3, 3 * FARTHEST + 5), np.uint8), []
    frames[1, -1] = frames[2, 7] = 9
    for _ in _kinds():
        changed, places = frames[[1, 2, 2], [-1, 7, -1]], np.zeros(3, np.uint32)
        places[:] = len(frames[0]) - 1, 7, len(frames[0]) - 1
        found.append(fold(frames[0], changed, places, np.array([0, 1, 3])))
    _same(found)


@QUICK
@given(data=st.binary(max_size=60), newest=st.integers(0, 5), kind=st.sampled_from(["<u4", "|u1"]))
def test_changes_of_anything_restore_the_same(data: bytes, newest: int, kind: str) -> None:
    found, width = [], 3 * np.dtype(kind).itemsize
    data = data[: len(data) // (width // 3 + GAP_BYTES) * (width // 3 + GAP_BYTES)]
    body = np.frombuffer(bytes(range(width)) + data, np.uint8)
    for _ in _kinds():
        stack, between = np.zeros((4, 3), kind), np.zeros((1, 3), kind)
        unfold(body, 0, width, len(body), Stacks(newest, stack, newest + 1, stack.copy(), between))
        found.append([stack, between])
    _same(found)


@QUICK
@given(
    rewards=hnp.arrays(np.float64, (60, 3), elements=st.floats(-1e6, 1e6) | st.just(np.nan)),
    acted=hnp.arrays(np.bool_, (60, 3)), rule=st.sampled_from(SHAPES), seed=SEEDS,
)  # fmt: skip
def test_steps_noted_and_cut(rewards: NDArray[Any], acted: NDArray[Any], rule: Any, seed: int) -> None:
    """Rewards that are no numbers, environments that take no step, one that never does."""
    ended = np.random.default_rng(seed).random((2, 60, 3)) < 0.2
    discounts = rule.discount ** np.arange(rule.multi_step + 1.0)
    numbers = Rewards(rule.history_length, rule.multi_step, rule.reward_clip, rule.reward_smoothing)
    steps = Steps(
        np.zeros((3, 60, 2), np.float32), np.zeros((3, 60, 2), np.bool_),
        np.zeros((3, 60), np.bool_), np.zeros((3, 60), np.uint16),
    )  # fmt: skip
    streams = Streams(np.zeros(3, np.int64), np.zeros(3), np.zeros(3, np.int64), np.zeros(3, np.int64))
    found = []
    for _ in _kinds():
        now, where, cuts = deepcopy(steps), deepcopy(streams), []
        for index in range(60):
            taken = Taken(rewards[index], ended[0, index], ended[1, index], acted[index])
            most = note_steps(now, where, index, taken, numbers)
            assert most == where.ready.max()
            if (rows := (where.ready >= 2).nonzero()[0]).size:
                cuts.append(cut_transitions(now, where, rows, 2, discounts))
        found.append([*now, *where, *cuts])
    _same(found)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_batches(shape: Any, dtype: str) -> None:
    episodes = random_episodes(np.random.default_rng(3), 200, (4, 2), dtype)
    lookahead, found = Lookahead(shape.multi_step, shape.discount), []
    for _ in _kinds():
        drafts, reader = feed(ChunkBuilder(shape), episodes), ChunkReader()
        found.append(
            [
                [value for value in batch if value is not None]
                for draft in drafts
                for batch in drawn(
                    draft.data, range(draft.transitions), reader, shape.history_length, lookahead
                )
            ]
        )
    _same(found)


@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, 10**6), change=st.integers(1, 255), keep=st.floats(0, 1), fresh=st.booleans())
def test_damaged_chunks_are_refused_alike(place: int, change: int, keep: float, fresh: bool) -> None:
    """One byte changed, or the end missing; with a header that is known, and with one that is new."""
    data = feed(ChunkBuilder(SHAPES[0]), random_episodes(np.random.default_rng(1), 40))[0].data
    damaged = bytearray(data[: max(int(len(data) * keep), 1)] if keep < 0.5 else data)
    damaged[place % len(damaged)] ^= change
    said = []
    for _ in _kinds():
        reader = ChunkReader()
        if not fresh:
            drawn(data, [0], reader)
        with pytest.raises(UnsoundRow) as refusal:
            drawn(bytes(damaged), [0], reader)
        said.append(str(refusal.value))
    assert said[0] == said[1]


HIDDEN = """
import sys
{hide}
import logging
logging.basicConfig(format="%(message)s")
import numpy as np
from kernels import choice
from memory.chunks.builder import ChunkBuilder
from memory.chunks.reader import ChunkReader
from memory.replay.priorities import SumTree
from tests.memory.reference import SHAPES, feed, random_episodes
from tests.memory.rows import drawn
drafts = feed(ChunkBuilder(SHAPES[0]), random_episodes(np.random.default_rng(0), 40))
print(choice.compiled_in_use(), len([drawn(draft.data, [0]) for draft in drafts]))
"""
NO_NUMBA = "sys.modules['numba'] = None"
NO_SYMBOL = "import lz4.block; del lz4.block._block.__file__"


@pytest.mark.parametrize("hide", [NO_NUMBA, NO_SYMBOL, "sys.modules['llvmlite'] = None"])
def test_plain_twins_run_where_something_is_missing(hide: str) -> None:
    """With one line of log instead of an ImportError."""
    command = [sys.executable, "-c", HIDDEN.format(hide=hide)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False 3"
    (line,) = ran.stderr.strip().splitlines()
    assert line.startswith("Plain operations compute instead of compiled loops")
