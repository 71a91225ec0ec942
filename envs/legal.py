"""Which actions a frame allows, where the rules of a game forbid some of them, and random play by them.

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


class RandomPolicy:
    """Uniform over `num_actions` discrete actions or, where that is None, between two bounds [A].

    `masked`: over those that a frame says are legal.
    """

    def __init__(
        self,
        num_actions: int | None,
        low: npt.ArrayLike | None,
        high: npt.ArrayLike | None,
        masked: bool = False,
    ) -> None:
        self._num_actions, self._low, self._high = num_actions, np.array(low), np.array(high)
        self._masked = masked

    @property
    def num_components(self) -> int:
        """A; 1 for discrete actions."""
        return 1 if self._num_actions is not None else len(self._low)

    def draw(self, frames: npt.NDArray[Any], generator: np.random.Generator) -> npt.NDArray[Any]:
        """[N] int64, or [N, A] float32, where frames [N, *frame] are seen."""
        if self._masked:
            return self.of_noise(generator.random((len(frames), 1)), frames)
        if self._num_actions is not None:
            actions: npt.NDArray[Any] = generator.integers(self._num_actions, size=len(frames))
            return actions
        return generator.uniform(self._low, self._high, (len(frames), *self._low.shape)).astype(np.float32)

    def of_noise(self, uniform: npt.NDArray[Any], frames: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The actions that numbers [N, A] in [0, 1) stand for."""
        if self._num_actions is not None:
            if self._masked:
                return drawn_action(legal_actions(frames, self._num_actions), uniform[:, 0])
            return (uniform[:, 0] * self._num_actions).astype(np.int64)
        low, high = self._low.astype(np.float32), self._high.astype(np.float32)
        actions: npt.NDArray[Any] = np.clip(low + uniform * (high - low), low, high)
        return actions
