import stat
from pathlib import Path

import pytest

from reporting.pages.page import BROWSERS, StillError, find_browser, write_still


def browser(folder: Path, script: str) -> str:
    """A program that is called as a browser is."""
    path = folder / BROWSERS[1]
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_an_installed_browser_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_browser() is None
    assert browser(tmp_path, "exit 0") == find_browser()


def test_the_picture_arrives_whole(tmp_path: Path) -> None:
    """The stand-in writes the last word of its command, the page, where a browser would write pixels."""
    script = (
        'for word; do case $word in --screenshot=*) to=${word#--screenshot=};; esac; done; echo "$word" > $to'
    )
    page, picture = tmp_path / "a page.html", tmp_path / "pictures" / "page.png"
    write_still(browser(tmp_path, script), page, picture, 1400, 900)
    assert picture.read_text() == f"file://{tmp_path}/a%20page.html\n"


@pytest.mark.parametrize("script", ["exit 3", "exit 0"])
def test_a_browser_that_fails_leaves_a_sentence(tmp_path: Path, script: str) -> None:
    with pytest.raises(StillError, match=r"took no picture|could not take a picture"):
        write_still(browser(tmp_path, script), tmp_path / "a.html", tmp_path / "a.png", 1400, 900)
    assert not (tmp_path / "a.png").exists()
