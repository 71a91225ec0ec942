"""A film is written whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from reporting.film import FilmError, mp4_film


def test_one_without_pictures_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FilmError, match="There was nothing to film"), mp4_film(tmp_path / "none.mp4", 10):
        pass
    assert not [*tmp_path.iterdir()]
