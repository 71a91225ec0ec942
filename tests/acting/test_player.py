import numpy as np
from numpy.typing import NDArray

from acting.player import FrameStack


def slow_stack(history: list[NDArray[np.uint8]], length: int) -> NDArray[np.uint8]:
    """The last `length` frames of one episode, zeros before its first."""
    missing = [np.zeros_like(history[0])] * (length - len(history))
    return np.stack([*missing, *history[-length:]]) if missing else np.stack(history[-length:])


def test_states_are_the_last_frames_of_their_own_episode() -> None:
    rng = np.random.default_rng(0)
    stack = FrameStack(3, 4, (2, 5), np.uint8)
    episodes: list[list[NDArray[np.uint8]]] = [[], [], []]
    for step in range(60):
        frames = rng.integers(1, 256, size=(3, 2, 5), dtype=np.uint8)
        first = rng.random(3) < (1.0 if step == 0 else 0.2)
        s_t = stack.push(frames, first)
        assert s_t.shape == (3, 4, 2, 5)
        for row in range(3):
            episodes[row] = [*([] if first[row] else episodes[row]), frames[row]]
            np.testing.assert_array_equal(s_t[row], slow_stack(episodes[row], 4))


def test_history_of_one_is_the_frame_itself() -> None:
    stack = FrameStack(2, 1, (3,), np.float32)
    frames = np.arange(6, dtype=np.float32).reshape(2, 3)
    for first in (True, False):
        s_t = stack.push(frames, np.full(2, first))
        assert s_t.dtype == np.float32
        np.testing.assert_array_equal(s_t, frames[:, None])


def test_state_is_a_view_that_the_next_push_overwrites() -> None:
    stack = FrameStack(1, 2, (1,), np.uint8)
    before = stack.push(np.array([[1]], np.uint8), np.array([True]))
    after = stack.push(np.array([[2]], np.uint8), np.array([False]))
    assert np.shares_memory(before, after)
    assert after.tolist() == [[[1], [2]]]
