"""A frame as a picture in a page: PNG in a `data:` address."""

from __future__ import annotations

import base64
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

LEAST_PIXELS = 240
"""Height in pixels up to which a smaller picture is enlarged, by a whole factor."""


def as_image(frame: NDArray[Any]) -> NDArray[np.uint8] | None:
    """[H, W] or [H, W, 3] uint8; None where `frame` is no image."""
    if frame.ndim == 3 and frame.shape[0] in (1, 3):
        frame = np.moveaxis(frame, 0, -1)
    if frame.ndim == 3 and frame.shape[-1] != 3:
        frame = _flattened(frame) if frame.shape[-1] > 1 else frame[..., 0]
    if frame.ndim not in (2, 3) or min(frame.shape[:2]) < 2:
        return None
    if frame.dtype != np.uint8 or frame.max(initial=0) <= 1:
        low, high = float(frame.min()), max(float(frame.max()), float(frame.min()) + 1e-6)
        frame = 255 * (frame.astype(np.float32) - low) / (high - low)
    return frame.astype(np.uint8)


def _flattened(frame: NDArray[Any]) -> NDArray[Any]:
    """Layers of things, each its own grey."""
    layers = frame.shape[-1]
    greys = np.linspace(0.3, 1.0, layers)
    return np.asarray(((frame > 0) * greys).max(axis=-1), np.float32)


def data_url(image: NDArray[np.uint8]) -> str:
    """The picture, enlarged where it is small."""
    factor = max(LEAST_PIXELS // image.shape[0], 1)
    large = image.repeat(factor, axis=0).repeat(factor, axis=1)
    coloured = large[..., ::-1] if large.ndim == 3 else large
    done, png = cv2.imencode(".png", np.ascontiguousarray(coloured))
    assert done
    return "data:image/png;base64," + base64.b64encode(png.tobytes()).decode()
