"""Which actions a frame allows, where the rules of a game forbid some of them.

A frame of such a game is float32 [numbers + A]: what is observed, then 1.0 for each of the A actions that is
legal and 0.0 for each that is not. So the replay, the batches and the snapshots need to know nothing of it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt


def legal_actions(frames: npt.NDArray[Any], num_actions: int) -> npt.NDArray[np.bool_]:
    """Frames [N, numbers + A] -> [N, A]; where a frame allows nothing (a game is over), everything."""
    legal = frames[:, -num_actions:] > 0
    legal[~legal.any(axis=1)] = True
    return legal


def drawn_action(legal: npt.NDArray[np.bool_], uniform: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The legal action [N] that a number [N] in [0, 1) stands for, each with equal probability."""
    place = (uniform * legal.sum(axis=1)).astype(np.int64)
    actions: npt.NDArray[np.int64] = (legal.cumsum(axis=1) > place[:, None]).argmax(axis=1)
    return actions
