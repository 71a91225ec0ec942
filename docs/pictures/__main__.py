"""Make the pictures of the documents: `python docs/pictures [NAME ...]`, all of them where none is named.

Each is made by what a reader would type, opened in a headless Chromium, written to docs/pictures/NAME.png.
To add one, write a function that leaves a page in a folder, and name it in PICTURES.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from reporting.page import BROWSERS, find_browser, write_still  # noqa: E402


def result_page(folder: Path) -> Path:
    """Of the README's first run."""
    learn = ["--game", "CartPole-v1", "--agent", "reinforce", "--path-to-results", str(folder)]
    _run("start_learning.py", *learn)
    return folder / "Reward_CartPole-v1.html"


def site(folder: Path) -> Path:
    """The first page of the documents."""
    _run("docs/site", str(folder / "site"))
    return folder / "site" / "docs" / "index.html"


def _run(*words: str) -> None:
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


class Picture(NamedTuple):
    """A page and how much of it is shown, in pixels."""

    make: Callable[[Path], Path]
    width: int
    height: int


PICTURES = {"result_page": Picture(result_page, 1300, 740), "site": Picture(site, 1300, 800)}


def main(names: list[str]) -> int:
    """Make those that are named."""
    browser = find_browser()
    unknown = [name for name in names if name not in PICTURES]
    if browser is None or unknown:
        missing = (
            f"none of {', '.join(BROWSERS)} is installed" if browser is None else f"no picture {unknown[0]}"
        )
        print(f"No pictures: {missing}; known are {', '.join(PICTURES)}.", file=sys.stderr)
        return 2
    for name in names or PICTURES:
        picture = PICTURES[name]
        with tempfile.TemporaryDirectory(prefix="picture-") as folder:
            page = picture.make(Path(folder))
            write_still(browser, page, HERE / f"{name}.png", picture.width, picture.height)
        print(f"Made {HERE / name}.png.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
