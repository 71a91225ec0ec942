"""Films in .mp4 files, and windows that show pictures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray


class FilmError(ValueError):
    """Nothing can be shown or filmed; the message is one sentence for the user."""


def check_film_name(path: Path) -> None:
    """Raises FilmError, before anything long begins, when `path` cannot be the name of a film."""
    if path.suffix.lower() != ".mp4":
        raise FilmError(f"A film is an .mp4 file, and {path} does not end in .mp4.")


@contextmanager
def mp4_film(path: Path, pictures_per_second: float) -> Iterator[Callable[[NDArray[np.uint8]], None]]:
    """Gives what appends a picture, [h, w, 3] in OpenCV's order of colours; others get the first one's size.

    The film appears under its name when the block ends without an exception, and not at all otherwise. Raises
    FilmError where it cannot be written.
    """
    check_film_name(path)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.mp4")
    writer, codec = cv2.VideoWriter(), cv2.VideoWriter.fourcc(*"mp4v")
    size: tuple[int, int] | None = None

    def append(picture: NDArray[np.uint8]) -> None:
        nonlocal size
        size = size or (picture.shape[1], picture.shape[0])
        if not (writer.isOpened() or writer.open(str(temporary), codec, pictures_per_second, size)):
            raise FilmError(f"The film {path} cannot be written: is its folder writable?")
        writer.write(cv2.resize(picture, size))  # which drops one of another size without a word

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FilmError(f"The film {path} cannot be written: {error.strerror}.") from error
    try:
        yield append
        writer.release()
        if not temporary.exists():
            raise FilmError(f"There was nothing to film, so {path} is not written.")
        temporary.replace(path)
    finally:
        writer.release()
        temporary.unlink(missing_ok=True)


def open_window(title: str) -> None:
    """Open a window; FilmError where that is not possible."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise FilmError("--render needs a display and there is none here; --record film.mp4 needs none.")
    try:
        cv2.namedWindow(title)
    except cv2.error as error:
        raise FilmError("--render needs an OpenCV with windows, and this one has none.") from error
