"""Films in .mp4 files, and windows that show pictures."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

import cv2
import numpy as np
from numpy.typing import NDArray


class FilmError(ValueError):
    """Nothing can be shown or filmed; the message is one sentence for the user."""


def check_film_name(path: Path) -> None:
    """Raises FilmError, before anything long begins, when `path` cannot be the name of a film."""
    if path.suffix.lower() != ".mp4":
        raise FilmError(f"A film is an .mp4 file, and {path} does not end in .mp4.")


class Mp4Film:
    """A film that takes its size from its first picture, for a `with` block.

    It appears under its name when the block ends without an exception, and not at all otherwise. Raises
    FilmError where it cannot be written.
    """

    def __init__(self, path: Path, pictures_per_second: float) -> None:
        check_film_name(path)
        self._path, self._pictures_per_second = path, pictures_per_second
        self._temporary = path.with_name(f".{path.stem}.{os.getpid()}.mp4")
        self._writer = cv2.VideoWriter()

    def __enter__(self) -> Mp4Film:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FilmError(f"The film {self._path} cannot be written: {error.strerror}.") from error
        return self

    def write(self, picture: NDArray[np.uint8]) -> None:
        """Appends a picture, [h, w, 3] in OpenCV's order of colours."""
        if not self._writer.isOpened():
            self._open(*picture.shape[:2])
        self._writer.write(picture)

    def _open(self, height: int, width: int) -> None:
        codec = cv2.VideoWriter.fourcc(*"mp4v")
        if not self._writer.open(str(self._temporary), codec, self._pictures_per_second, (width, height)):
            raise FilmError(f"The film {self._path} cannot be written: is its folder writable?")

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._writer.release()
        if kind is None and not self._temporary.exists():
            raise FilmError(f"There was nothing to film, so {self._path} is not written.")
        if kind is None:
            self._temporary.replace(self._path)
        self._temporary.unlink(missing_ok=True)


def open_window(title: str) -> None:
    """Open a window; FilmError where that is not possible."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise FilmError("--render needs a display and there is none here; --record film.mp4 needs none.")
    try:
        cv2.namedWindow(title)
    except cv2.error as error:
        raise FilmError("--render needs an OpenCV with windows, and this one has none.") from error
