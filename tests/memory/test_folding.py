"""Folded frames are what they were, whichever of them are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.folding import BYTE, WORD, fold, unfolded
from memory.kernels import FARTHEST, GAP_BYTES, unfold


def _restored(frames: NDArray[np.uint8], changes: bytes) -> NDArray[np.uint8]:
    first = frames[0].tobytes()
    return unfolded(first + changes, 0, len(first), frames.shape, frames.dtype)


def _some_changes(shape: tuple[int, ...], share: float, seed: int) -> NDArray[np.uint8]:
    """Frames of which each pixel changes from one to the next with probability `share`."""
    generator = np.random.default_rng(seed)
    differences = generator.integers(1, 256, shape) * (generator.random(shape) < share)
    return np.bitwise_xor.accumulate(differences.astype(np.uint8), axis=0)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 1.0])
@pytest.mark.parametrize("shape", [(1, 8), (22, 84, 84), (9, 5, 3), (2, 1), (40, 4), (3, 7, 2, 3)])
def test_round_trip(shape: tuple[int, ...], share: float) -> None:
    """Words of one byte and of four, whole blocks of them and the rest behind the last."""
    frames = _some_changes(shape, share, seed=len(shape))
    np.testing.assert_array_equal(_restored(frames, fold(frames)), frames)


def test_only_what_changes_is_stored() -> None:
    frames = np.zeros((10, 84, 84), np.uint8)
    assert len(fold(frames)) == 0
    frames[4:, 50, 3] = 9
    frames[5:, 50, 3] = 0
    assert len(fold(frames)) == 2 * (WORD.itemsize + GAP_BYTES)


@pytest.mark.parametrize("words", [FARTHEST - 1, FARTHEST, FARTHEST + 1, 3 * FARTHEST + 5])
def test_changes_may_lie_far_apart(words: int) -> None:
    """Farther than a gap can say."""
    frames = np.zeros((3, words, 4), np.uint8)
    frames[1:, -1, 2] = 7
    frames[2, 0, 0] = 8
    np.testing.assert_array_equal(_restored(frames, fold(frames)), frames)


def test_floats_keep_every_bit() -> None:
    """Also where values are equal and bits are not, and where bits are equal and values are not."""
    frames = np.array([[0.0, 1.0], [-0.0, 1.0], [np.nan, 1.0], [np.nan, np.inf]], np.float32)
    restored = unfolded(frames[0].tobytes() + fold(frames), 0, 8, frames.shape, frames.dtype)
    assert restored.tobytes() == frames.tobytes()


def test_frames_need_not_lie_side_by_side() -> None:
    frames = _some_changes((6, 8, 8), 0.1, seed=3)[::2, :, ::2]
    np.testing.assert_array_equal(_restored(frames, fold(frames)), frames)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_changes_say_they_stay_inside(seed: int) -> None:
    """Gaps and words of anything: what lies before and behind the frames keeps its values."""
    generator = np.random.default_rng(seed)
    for word in (WORD, BYTE):
        around = np.full((7, 3), 0x55, word)
        inside, frame_bytes = around[1:-1], 3 * word.itemsize
        changes = generator.bytes(int(generator.integers(0, 40)) * (word.itemsize + GAP_BYTES))
        data = np.frombuffer(bytes(frame_bytes) + changes, np.uint8)
        unfold(data, 0, frame_bytes, len(data), 0, inside[:0], 4, inside, inside[:0])
        assert (inside[0] == 0).all() and (around[[0, -1]] == 0x55).all()
