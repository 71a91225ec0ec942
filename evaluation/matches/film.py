"""One game of a match as a film, with both sides named under its pictures."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from envs.config import EnvConfig
from envs.playback import Action, Frames
from evaluation.film import INK, NOW, PAPER, EpisodePictures, check_pictures
from reporting.film import check_film_name, mp4_film

FONT = cv2.FONT_HERSHEY_SIMPLEX
MARGIN = 12
"""Pixels around the lines of text (our choice)."""
LARGEST = 1 / 1000
"""Largest scale of OpenCV's font per pixel of a picture's width: letters are 21 pixels high in a picture
1,000 wide. Longer names get smaller ones.
"""


class MatchFilm:
    """Keeps the moves of a match's first game, and films it afterwards.

    Raises:
        FilmError: `path` is not an .mp4 file.
        EnvError: the game has no pictures.
    """

    def __init__(self, path: Path, env_config: EnvConfig, sides: tuple[str, str]) -> None:
        """`sides`: who has the first seat in that game, and who the second."""
        check_film_name(path)
        check_pictures(env_config)
        self.path, self._env_config, self._sides = path, env_config, sides
        self._seed, self._actions = 0, list[Action]()

    def start(self, episode: int, seed: int) -> None:
        """A game starts, or begins anew."""
        if episode == 0:
            self._seed, self._actions = seed, []

    def step(self, episode: int, action: Action, frame: Frames) -> None:
        """Remember the move."""
        if episode == 0:
            self._actions.append(action)

    def write(self) -> None:
        """The film takes its name when it is complete. Raises FilmError where it cannot be written."""
        with (
            closing(EpisodePictures(self._env_config, self._seed)) as playback,
            mp4_film(self.path, playback.per_second) as append,
        ):
            for ply, action in enumerate(self._actions):
                moved = ply % 2 if np.ndim(action) == 0 else None
                for picture in playback.step(action):
                    named = caption(self._sides, moved, picture.shape[1])
                    append(np.concatenate([picture, named]))


def caption(sides: tuple[str, str], moved: int | None, width: int) -> NDArray[np.uint8]:
    """[h, width, 3] uint8 in OpenCV's order of colours: a line for each side, that of who moved marked.

    Args:
        moved: 0 or 1; None where both did.
    """
    lines = [f"{seat}: {name}" for seat, name in zip(("first seat", "second seat"), sides, strict=True)]
    widest = max(_size(line)[0] for line in lines)
    scale = min(LARGEST * width, (width - 2 * MARGIN) / widest)
    height = round(scale * max(_size(line)[1] for line in lines)) + MARGIN
    picture = np.full((2 * height + MARGIN, width, 3), PAPER, np.uint8)
    for number, line in enumerate(lines):
        colour: Any = NOW if number == moved else INK
        place = MARGIN, (number + 1) * height
        cv2.putText(picture, line, place, FONT, scale, colour, 1, cv2.LINE_AA)
    return picture


def _size(text: str) -> tuple[int, int]:
    (width, height), _ = cv2.getTextSize(text, FONT, 1.0, 1)
    return width, height
