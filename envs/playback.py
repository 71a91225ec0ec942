"""Films: the same seed and the same actions once more, on environments that can draw themselves.

ale_py.AtariVectorEnv has no picture to show, so that an episode is filmed by replaying it: its seed and its
actions give, frame for frame, the same observations (tested), together with the RGB pictures.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from envs.config import EnvError
from own_code.code import error_text

Frames = npt.NDArray[np.uint8 | np.float32]
Action = int | npt.NDArray[np.int64 | np.float32]
"""Of one environment, a number or [A]; or [S], one of each seat of a game of moves at the same time."""
Screen = npt.NDArray[np.uint8]  # [h, w, 3], RGB

_PIXELS_PER_CELL = 16


class Playback(Protocol):
    """One episode replayed from its seed and its actions, with pictures a person can watch."""

    def first(self) -> Frames:
        """Starts the episode and returns its first frame [*frame], as the vector environment shows it."""

    def step(self, action: Action) -> tuple[Frames, list[Screen]]:
        """Returns the frame [*frame] after `action`, and the RGB pictures [h, w, 3] uint8 of that step."""

    def close(self) -> None:
        """Closes its environment."""


class VectorPlayback:
    """Replays an episode on the vector environment itself."""

    def __init__(self, env: VectorEnv[Any, Any, Any], picture: Callable[[Frames], Screen]) -> None:
        """`env`: built with the episode's seed; `picture`: of the frame that a step led to, [h, w, 3]."""
        self._env, self._picture = env, picture
        self._action_shape = env.single_action_space.shape or ()

    def first(self) -> Frames:
        """Starts the episode and returns its first frame [*frame]."""
        frame: Frames = self._env.reset()[0][0]
        return frame

    def step(self, action: Action) -> tuple[Frames, list[Screen]]:
        """Returns the frame [*frame] after `action`, and its picture."""
        actions = np.reshape(action, (self._env.num_envs, *self._action_shape))
        frame: Frames = self._env.step(actions)[0][0]
        return frame, [self._picture(frame)]

    def close(self) -> None:
        """Closes the environment."""
        self._env.close()


def not_repeated(game: str) -> str:
    """The sentence of a replay that went another way."""
    return f"{game} does not repeat its episode from its seed, so that a film shows another than was played."


def drawn(render: Callable[[], Any], game: str) -> Screen:
    """The picture [h, w, 3] that an environment's own code draws. Raises EnvError where it is none."""
    try:
        picture = render()
    except NotImplementedError as error:
        raise EnvError(f"The environment {game} cannot draw itself: it has no render().") from error
    except Exception as error:  # of code that is not ours
        raise EnvError(f"The environment {game} could not be drawn: {error_text(error)}.") from error
    if not isinstance(picture, np.ndarray):
        raise EnvError(f"The environment {game} has no picture to show.")
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or 0 in picture.shape:
        shape, kind = list(picture.shape), picture.dtype
        raise EnvError(f"render() of {game} gives {shape} of {kind} instead of [h, w, 3] of uint8.")
    return picture


def enlarged(colours: Screen) -> Screen:
    """A picture of a small grid, each of its cells as 16 x 16 pixels."""
    return np.kron(colours, np.ones((_PIXELS_PER_CELL, _PIXELS_PER_CELL, 1), np.uint8))
