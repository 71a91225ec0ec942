"""What bodies of ML-Agents' present protocol observe, as numbers and pictures.

A body has several observations. Those of one or two dimensions become one row of numbers; the first of three
is what it sees, as floats in [0, 1] or as PNGs of three channels each, one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from envs.playback import Frames
from envs.unity.protocols.bodies import Camera, PlayerFailed

_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Shapes:
    """Shapes of a behavior's observations. `channels_first`: pictures are [C, h, w], else [h, w, C]."""

    of_each: tuple[tuple[int, ...], ...]
    channels_first: bool

    @property
    def numbers(self) -> int:
        """How many there are in all."""
        return sum(int(np.prod(shape)) for shape in self.of_each if len(shape) < 3)

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """The cameras of all pictures."""
        return tuple(self._camera(shape) for shape in self.of_each if len(shape) == 3)

    def read_numbers(self, observations: Sequence[Any]) -> npt.NDArray[np.float32]:
        """The numbers of one body, [numbers]. Raises PlayerFailed where they are not as announced."""
        self._check(observations)
        found = [np.array(each.floats.data, np.float32) for each in observations if len(each.shape) < 3]
        numbers = np.concatenate([np.zeros(0, np.float32), *found])
        if len(numbers) != self.numbers:
            raise PlayerFailed(f"describes a body by {len(numbers)} numbers and announced {self.numbers}")
        return numbers

    def read_picture(self, observations: Sequence[Any]) -> Frames:
        """What a body with a camera sees, uint8 [h, w] or [h, w, C]. Raises PlayerFailed as above."""
        return self._picture(next(each for each in observations if len(each.shape) == 3))

    def _picture(self, said: Any) -> Frames:
        camera = self._camera(tuple(said.shape))
        if said.compressed:
            picture = _decoded(said.compressed, list(said.channel_mapping), camera.channels)
        else:
            floats = np.array(said.floats.data, np.float32)
            if floats.size != np.prod(said.shape):
                raise PlayerFailed("sends a picture that is none of its camera's")
            floats = floats.reshape(said.shape)
            picture = np.moveaxis(floats, 0, -1) if self.channels_first else floats
            picture = 255 * picture
        if picture.shape != (camera.height, camera.width, camera.channels):
            raise PlayerFailed("sends a picture that is none of its camera's")
        frame: Frames = np.rint(picture.clip(0, 255)).astype(np.uint8)
        return frame[..., 0] if camera.channels == 1 else frame

    def _camera(self, shape: tuple[int, ...]) -> Camera:
        if self.channels_first:
            channels, height, width = shape
        else:
            height, width, channels = shape
        return Camera(height, width, channels)

    def _check(self, observations: Sequence[Any]) -> None:
        if tuple(tuple(each.shape) for each in observations) != self.of_each:
            raise PlayerFailed("describes a body by other shapes than it announced")


def _decoded(data: bytes, mapping: Sequence[int], channels: int) -> npt.NDArray[np.float32]:
    """[h, w, C] in [0, 255]: each the mean of those of the PNGs' channels that `mapping` gives to it."""
    parts = [np.frombuffer(_PNG + part, np.uint8) for part in data.split(_PNG)[1:]]
    decoded = [cv2.imdecode(part, cv2.IMREAD_COLOR_RGB) for part in parts]
    pictures = [part for part in decoded if part is not None]
    if not pictures or len({picture.shape for picture in pictures}) > 1 or len(pictures) < len(parts):
        raise PlayerFailed("sends a picture that is no PNG")
    found = np.concatenate(pictures, axis=2).astype(np.float32)
    places = np.array(mapping or ([0, 0, 0] if channels == 1 else range(found.shape[2])))
    if len(places) != found.shape[2] or not np.isin(np.arange(channels), places).all():
        raise PlayerFailed("sends a picture whose channels are not its camera's")
    return np.stack([found[..., places == channel].mean(axis=2) for channel in range(channels)], axis=2)
