"""A window that shows what an actor sees, at real speed."""

from __future__ import annotations

import time
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from acting.player import VectorStep
from envs.config import EnvDescription
from reporting.film import FilmError, open_window

STEPS_PER_SECOND = 15.0
"""Agent steps per second where the environment has no clock of its own: those of most Atari play (60 frames /
4).
"""
HEIGHT = 480
"""Height in pixels up to which small images are enlarged, by a whole factor."""


class LiveWindow:
    """Shows the frames of the first environment. Raises FilmError without a display, or where these are no
    grey or RGB images.
    """

    def __init__(self, title: str, description: EnvDescription) -> None:
        shape = description.frame_shape
        if description.frame_dtype != "uint8" or not (len(shape) == 2 or shape[2:] == (3,)):
            raise FilmError(
                "--render of an actor shows its grey or RGB images, and these observations are none:"
                " watch a snapshot with test_multiple_seed.py --render."
            )
        open_window(title)
        self._title = title
        per_second = description.frames_per_second or STEPS_PER_SECOND * description.frames_per_step
        self._seconds_per_step = description.frames_per_step / per_second
        self._shown_at = time.monotonic()

    def add(self, step: VectorStep) -> None:
        """Show what came of the step, and let its time pass."""
        frame = step.next_frames[0]
        picture = cv2.cvtColor(frame, cv2.COLOR_RGB2BGR) if frame.ndim == 3 else frame
        times = max(1, HEIGHT // frame.shape[0])
        cv2.imshow(self._title, np.kron(picture, np.ones((times, times, *[1] * (frame.ndim - 2)), np.uint8)))
        left = self._seconds_per_step - (time.monotonic() - self._shown_at)
        cv2.waitKey(max(1, round(1000 * left)))
        self._shown_at = time.monotonic()

    def close(self, frames: NDArray[Any]) -> None:
        """Close the window."""
        cv2.destroyWindow(self._title)
