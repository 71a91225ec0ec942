"""A curve under a film, of something that each step is worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

HEIGHT = 96
STEPS_SHOWN = 300
"""20 seconds of an ALE game at 15 agent steps a second."""
MARGIN = 6
PAPER, LINE, NOW, INK = (24, 20, 18), (191, 140, 60), (90, 200, 255), (225, 225, 225)  # blue, green, red


class Curve(NamedTuple):
    """What is drawn: a number for each frame that a step led to."""

    name: str
    values: Callable[[NDArray[Any]], NDArray[Any]]  # frames [N, *frame] -> [N]


class Strip:
    """The last steps of a curve as a picture; its scale is that of the whole episode."""

    def __init__(self, name: str, values: NDArray[Any], width: int) -> None:
        """`values`: [T] of the episode's steps; `width`: pixels."""
        self._name, self._values, self._width = name, values, width
        low, high = float(values.min()), float(values.max())
        self._low, self._spread = low, max(high - low, 1e-12)

    def draw(self, step: int) -> NDArray[np.uint8]:
        """[HEIGHT, width, 3] uint8 in OpenCV's order of colours, with the values up to that of `step`."""
        picture = np.full((HEIGHT, self._width, 3), PAPER, np.uint8)
        points = self._points(step)
        cv2.polylines(picture, [points], isClosed=False, color=LINE, thickness=1, lineType=cv2.LINE_AA)
        now = int(points[-1][0]), int(points[-1][1])
        cv2.circle(picture, now, 3, NOW, -1, cv2.LINE_AA)
        text = f"{self._name} {self._values[step]:.3g}"
        cv2.putText(picture, text, (MARGIN, 16), cv2.FONT_HERSHEY_SIMPLEX, 0.45, INK, 1, cv2.LINE_AA)
        return picture

    def _points(self, step: int) -> NDArray[np.int32]:
        """[M, 2] pixels; the newest step lies at the right edge once the strip is full."""
        first = max(0, step + 1 - STEPS_SHOWN)
        shown = self._values[first : step + 1]
        x = MARGIN + np.arange(len(shown)) * (self._width - 2 * MARGIN) / (STEPS_SHOWN - 1)
        height = (shown - self._low) / self._spread
        y = HEIGHT - MARGIN - height * (HEIGHT - 24 - MARGIN)
        return np.stack([x, y], axis=1).round().astype(np.int32)
