"""Pictures and films of what an event log holds: the frames as the agent saw them."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from event_log.reader import read_episodes, read_header
from event_log.records import EventLogError, LoggedEpisode
from reporting.film import Mp4Film

FILM_WIDTH = 320
"""Pixels; frames of a film are enlarged by a whole even factor to at least this: the text needs room."""
LINE_HEIGHT, TEXT_SCALE = 20, 0.45

Picture = NDArray[np.uint8]  # [h, w, 3], OpenCV's order of colours


def check_pictures(path: Path) -> None:
    """Raises EventLogError when the frames of a log are no pictures."""
    header = read_header(path)
    shape = header.frame_shape
    grey, coloured = len(shape) == 2, len(shape) == 3 and shape[-1] in (1, 3)
    if header.frame_dtype != "uint8" or not (grey or coloured):
        raise EventLogError(
            f"There is no picture in {path}: its frames are {header.frame_dtype} of shape {shape}."
        )


def write_pictures(path: Path, folder: Path, chosen: Container[int] | None, nth: int) -> int:
    """Write every `nth` frame of the chosen episodes (None: all) as PNG; returns how many.

    A name tells episode, step, and the action taken there with its reward. Raises EventLogError.
    """
    check_pictures(path)
    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for episode in read_episodes(path, chosen):
            for step in range(0, len(episode.frames), nth):
                name = "_".join([f"episode_{episode.number:05d}_step_{step:06d}", *_deed(episode, step)])
                (folder / f"{name.replace(' ', '_')}.png").write_bytes(_png(episode.frames[step]))
                written += 1
    except OSError as error:
        raise EventLogError(f"The pictures cannot be written to {folder}: {error.strerror}.") from error
    return written


def _deed(episode: LoggedEpisode, step: int) -> list[str]:
    """Action and reward; nothing at a last frame."""
    if step >= len(episode.r_t):
        return ["end"]
    action = ",".join(f"{part:.3g}" for part in np.atleast_1d(episode.a_t[step]).tolist())
    return [f"action {action}", f"reward {episode.r_t[step]:g}"]


def _png(frame: NDArray[Any]) -> bytes:
    return cv2.imencode(".png", _in_colour(frame))[1].tobytes()


def _in_colour(frame: NDArray[Any]) -> Picture:
    coloured = frame.ndim == 3 and frame.shape[-1] == 3
    return np.asarray(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR if coloured else cv2.COLOR_GRAY2BGR), np.uint8)


def write_film(
    path: Path, film_path: Path, chosen: Container[int] | None, nth: int, pictures_per_second: float
) -> int:
    """Film every `nth` frame of the chosen episodes, one after the other; returns how many frames.

    Episode, step, action and reward stand under the picture. Raises EventLogError or FilmError.
    """
    check_pictures(path)
    written = 0
    with Mp4Film(film_path, pictures_per_second) as film:
        for episode in read_episodes(path, chosen):
            for step in range(0, len(episode.frames), nth):
                text = [f"episode {episode.number}  step {step}", "  ".join(_deed(episode, step))]
                film.write(_captioned(episode.frames[step], text))
                written += 1
    return written


def _captioned(frame: NDArray[Any], text: list[str]) -> Picture:
    height, width = frame.shape[:2]
    scale = 2 * max(-(-FILM_WIDTH // (2 * width)), 1)
    picture = np.zeros((height * scale + LINE_HEIGHT * len(text), width * scale, 3), np.uint8)
    size = (width * scale, height * scale)
    picture[: size[1]] = cv2.resize(_in_colour(frame), size, interpolation=cv2.INTER_NEAREST)
    for line, words in enumerate(text, 1):
        place = (4, size[1] + LINE_HEIGHT * line - 6)
        cv2.putText(picture, words, place, cv2.FONT_HERSHEY_SIMPLEX, TEXT_SCALE, (255, 255, 255))
    return picture
