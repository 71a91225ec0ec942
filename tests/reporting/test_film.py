"""A film is written whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from reporting.film import FilmError, mp4_film


def test_one_without_pictures_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FilmError, match="There was nothing to film"), mp4_film(tmp_path / "none.mp4", 10):
        pass
    assert not [*tmp_path.iterdir()]


def test_pictures_of_another_size_get_that_of_the_first(tmp_path: Path) -> None:
    """They were left out without a word."""
    path = tmp_path / "film.mp4"
    with mp4_film(path, 10) as append:
        for height in (40, 50, 30):
            append(np.full((height, 60, 3), 200, np.uint8))
    film = cv2.VideoCapture(str(path))
    pictures = [film.read()[1] for _ in range(3)]
    assert [picture.shape for picture in pictures] == [(40, 60, 3)] * 3
    assert all(abs(picture.mean() - 200) < 10 for picture in pictures)
