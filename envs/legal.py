"""Which actions a frame allows, where the rules of a game forbid some of them.

Such a frame ends with the rules, so that replay, batches and snapshots need to know nothing of them. One of
numbers, float32 [numbers + A], has 1.0 at the end for each of the A actions that is legal and 0.0 for each
other. An image, uint8 [h, w, planes + 1], has them as 255 and 0 in its last plane, row by row from its first
cell on: at connect four above the columns into which a piece may fall.
"""

from typing import Any

import numpy as np
import numpy.typing as npt


def legal_actions(frames: npt.NDArray[Any], num_actions: int) -> npt.NDArray[np.bool_]:
    """Frames [N, *frame] -> [N, A]; where a frame allows nothing (a game is over), everything."""
    legal = _written(frames, num_actions)
    legal[~legal.any(axis=1)] = True
    return legal


def allows_any(frame: npt.NDArray[Any], num_actions: int) -> bool:
    """Whether one frame allows some action."""
    return bool(_written(frame[None], num_actions).any())


def _written(frames: npt.NDArray[Any], num_actions: int) -> npt.NDArray[np.bool_]:
    if frames.ndim == 2:
        return frames[:, -num_actions:] > 0
    return frames[..., -1].reshape(len(frames), -1)[:, :num_actions] > 0


def without_forbidden(
    estimates: npt.NDArray[np.float32], states: npt.NDArray[Any]
) -> npt.NDArray[np.float32]:
    """Estimates [N, K, A], NaN for actions that the last frames of the states [N, H, *frame] forbid."""
    legal = legal_actions(states[:, -1], estimates.shape[2])  # [N, A]
    return np.where(legal[:, None], estimates, np.float32(np.nan))


def drawn_action(legal: npt.NDArray[np.bool_], uniform: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The legal action [N] that a number [N] in [0, 1) stands for, each with equal probability."""
    place = (uniform * legal.sum(axis=1)).astype(np.int64)
    actions: npt.NDArray[np.int64] = (legal.cumsum(axis=1) > place[:, None]).argmax(axis=1)
    return actions
