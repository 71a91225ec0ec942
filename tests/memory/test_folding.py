"""Folded frames are what they were, whichever of them are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels.layouts import FARTHEST, GAP_BYTES, Stacks
from kernels.read_chunks import unfold
from memory.chunks.chunk import unfolded
from memory.chunks.frame_log import BYTE, WORD, FrameLog
from memory.chunks.unfinished import restored
from tests.memory.reference import fold

pytestmark = pytest.mark.usefixtures("both_kernels")


def _logged(frames: NDArray[Any]) -> FrameLog:
    """[N, T, *frame] as one environment after the other saw them."""
    log = FrameLog(frames.shape[1])
    for moment in np.moveaxis(frames, 1, 0):
        log.append(moment)
    return log


def _folded(log: FrameLog, row: int, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """The first frame, and the changes."""
    words, changes = log.folded(row, start, stop)
    shape, dtype = log.kind
    return words.view(dtype).reshape(shape).copy(), changes


def _check(log: FrameLog, frames: NDArray[np.uint8], row: int, start: int, stop: int) -> None:
    first, changes = _folded(log, row, start, stop)
    assert changes.tobytes() == fold(frames[row, start:stop])
    np.testing.assert_array_equal(unfolded(first, changes, stop - start), frames[row, start:stop])


def _some_changes(shape: tuple[int, ...], share: float, seed: int) -> NDArray[np.uint8]:
    """[N, T, *frame] of which each pixel changes from one moment to the next with probability `share`."""
    generator = np.random.default_rng(seed)
    differences = generator.integers(1, 256, shape) * (generator.random(shape) < share)
    return np.bitwise_xor.accumulate(differences.astype(np.uint8), axis=1)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 1.0])
@pytest.mark.parametrize("shape", [(1, 8), (22, 84, 84), (9, 5, 3), (2, 1), (40, 4), (3, 7, 2, 3)])
def test_round_trip(shape: tuple[int, ...], share: float) -> None:
    """Words of one byte and of four, whole blocks of them and the rest behind the last; other environments
    beside them.
    """
    frames = _some_changes((2, *shape), share, seed=len(shape))
    log = _logged(frames)
    for row in range(2):
        _check(log, frames, row, 0, shape[0])


def test_frames_are_asked_for_piece_by_piece_and_forgotten() -> None:
    """As chunks of two environments need them, each at its own pace."""
    frames = _some_changes((2, 300, 6, 8), 0.1, seed=1)
    log, gone, starts = FrameLog(40), 0, [0, 0]
    for moment in range(300):
        if log.length == 40:
            log.forget(min(starts) - gone)
            gone = min(starts)
            np.testing.assert_array_equal(restored(log)[0, starts[0] - gone :], frames[0, starts[0] : moment])
        log.append(frames[:, moment])
        for row, pace in enumerate((5, 9)):
            if moment % pace == pace - 1:
                _check(log, frames[:, gone:], row, starts[row] - gone, moment + 1 - gone)
                starts[row] = moment - 2
    log.forget(log.length)
    log.append(frames[:, 0])
    _check(log, frames, 1, 0, 1)


def test_only_what_changes_is_stored() -> None:
    frames = np.zeros((1, 10, 84, 84), np.uint8)
    assert len(_folded(_logged(frames), 0, 0, 10)[1]) == 0
    frames[0, 4:, 50, 3] = 9
    frames[0, 5:, 50, 3] = 0
    assert len(_folded(_logged(frames), 0, 0, 10)[1]) == 2 * (WORD.itemsize + GAP_BYTES)


def test_moments_that_are_not_known_are_refused() -> None:
    """Those before the first of the last chunk are forgotten, and those that have not come are not there."""
    log = _logged(_some_changes((1, 10, 6, 8), 0.1, seed=4))
    _folded(log, 0, 4, 8)
    for start, stop in ((3, 8), (5, 5), (5, 11), (-1, 3)):
        with pytest.raises(ValueError, match=f"No frames {start} to"):
            _folded(log, 0, start, stop)


@pytest.mark.parametrize("words", [FARTHEST - 1, FARTHEST, FARTHEST + 1, 3 * FARTHEST + 5])
def test_changes_may_lie_far_apart(words: int) -> None:
    """Farther than a gap can say."""
    frames = np.zeros((1, 4, words, 4), np.uint8)
    frames[:, 1:, -1, 2] = 7
    frames[:, 3, 0, 0] = 8
    frames[:, :, FARTHEST // 2] = 5
    _check(_logged(frames), frames, 0, 0, 4)


def test_floats_keep_every_bit() -> None:
    """Also where values are equal and bits are not, and where bits are equal and values are not."""
    frames = np.array([[[0.0, 1.0], [-0.0, 1.0], [np.nan, 1.0], [np.nan, np.inf]]], np.float32)
    first, changes = _folded(_logged(frames), 0, 0, 4)
    assert unfolded(first, changes, 4).tobytes() == frames.tobytes()


def test_frames_need_not_lie_side_by_side() -> None:
    frames = _some_changes((2, 6, 8, 8), 0.1, seed=3)[:, ::2, :, ::2]
    _check(_logged(frames), frames, 1, 0, 3)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_changes_say_they_stay_inside(seed: int) -> None:
    """Gaps and words of anything: what lies before and behind the frames keeps its values."""
    generator = np.random.default_rng(seed)
    for word in (WORD, BYTE):
        around = np.full((7, 3), 0x55, word)
        inside, frame_bytes = around[1:-1], 3 * word.itemsize
        changes = generator.bytes(int(generator.integers(0, 40)) * (word.itemsize + GAP_BYTES))
        data = np.frombuffer(bytes(frame_bytes) + changes, np.uint8)
        unfold(data, 0, frame_bytes, len(data), Stacks(0, inside[:0], 4, inside, inside[:0]))
        assert (inside[0] == 0).all() and (around[[0, -1]] == 0x55).all()
