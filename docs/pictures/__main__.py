"""Make the pictures of the documents: `python docs/pictures [NAME ...]`, all of them where none is named.

Each is made by what a reader would type, opened in a headless Chromium, written to docs/pictures/NAME.png.
To add one, write a function that leaves a page in a folder, or that draws by itself, and name it in PICTURES.
The live page needs the extra page-test besides.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from memory.runs.keys import Keys  # noqa: E402
from memory.server.connection import RedisConfig  # noqa: E402
from reporting.measures.fitness import score_levels  # noqa: E402
from reporting.pages.page import BROWSERS, find_browser, write_still  # noqa: E402
from supervision.run_watch import RunWatch, Story  # noqa: E402
from supervision.terminal_view import live_view as drawn_view  # noqa: E402

CARTPOLE = "--game", "CartPole-v1", "--agent", "reinforce"
CATCH = "--game", "probe:catch", "--agent", "iqn"
LATE = 120_000
"""Agent steps of the first run at which the terminal is drawn, unless the time left is known before."""
CAUGHT = 0.5
"""Mean score, from -1 to 1, at which the live page is drawn."""
WITHIN_AN_EPISODE = "new Set([...document.querySelectorAll('img.frame')].map(each => each.src)).size == 4"
"""JavaScript that is true once the page shows four frames that differ: at an episode's beginning those before
it are black.
"""
COLUMNS = 88
PAGE = """<!doctype html><body style="margin:0;background:#292929">{}</body>"""


def result_page(folder: Path) -> Path:
    """Of the README's first run."""
    _run("start_learning.py", *CARTPOLE, "--path-to-results", str(folder))
    return folder / "Reward_CartPole-v1.html"


def site(folder: Path) -> Path:
    """The first page of the documents."""
    _run("docs/site", str(folder / "site"))
    return folder / "site" / "docs" / "index.html"


def live_view(folder: Path) -> Path:
    """What the terminal of the README's first run shows after a while."""
    with _running(folder, *CARTPOLE):
        story = _story(folder, "CartPole-v1", lambda story: bool(story.seconds_left) or story.t > LATE)
    console = Console(record=True, width=COLUMNS, file=(folder / "terminal").open("w"))
    console.print(drawn_view("CartPole-v1 · reinforce", story, score_levels("CartPole-v1")))
    page = folder / "view.html"
    page.write_text(PAGE.format(console.export_svg(title="start_learning.py")))
    return page


def live_page(folder: Path, picture: Path) -> None:
    """What an agent sees while it learns to catch."""
    from playwright.sync_api import sync_playwright

    with _running(folder, *CATCH, "--page", "true", "--page-port", "0"), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.goto(_address(folder / "log"))
        _story(folder, "probe:catch", lambda story: bool(story.scores) and story.scores[-1][1] > CAUGHT)
        page.locator(".tab", has_text="What the agent sees").click()
        page.wait_for_selector("#graph-values .trace", timeout=60_000)
        page.wait_for_function(WITHIN_AN_EPISODE, timeout=60_000)
        page.screenshot(path=picture)
        browser.close()


@contextmanager
def _running(folder: Path, *words: str) -> Iterator[None]:
    """A run with a server of its own, stopped at the end."""
    command = [sys.executable, "start_learning.py", *words]
    place = ["--host-redis", str(folder / "socket"), "--path-to-results", str(folder)]
    with (folder / "log").open("w") as log:
        run = subprocess.Popen([*command, *place], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            run.terminate()
            run.wait()


def _story(folder: Path, run: str, is_there: Callable[[Story], bool]) -> Story:
    """What the run tells once it is that far."""
    with closing(RunWatch(RedisConfig(str(folder / "socket"), 0), Keys(run))) as watch:
        while not is_there(watch.story):
            watch.look()
            time.sleep(0.2)
        return watch.story


def _address(log: Path) -> str:
    """Of the page, once the run has said it."""
    while not (found := re.search(r"http://\S+", log.read_text())):
        time.sleep(0.2)
    return found[0]


def _run(*words: str) -> None:
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


class Still(NamedTuple):
    """A page and how much of it is shown, in pixels."""

    make: Callable[[Path], Path]
    width: int
    height: int

    def draw(self, folder: Path, picture: Path) -> None:
        """Write the picture; the page is made in `folder`."""
        browser = find_browser()
        assert browser is not None
        write_still(browser, self.make(folder), picture, self.width, self.height)


PICTURES: dict[str, Callable[[Path, Path], None]] = {
    "result_page": Still(result_page, 1300, 740).draw,
    "site": Still(site, 1300, 800).draw,
    "live_view": Still(live_view, 1090, 490).draw,
    "live_page": live_page,
}


def main(names: list[str]) -> int:
    """Make those that are named."""
    unknown, has_browser = [name for name in names if name not in PICTURES], find_browser() is not None
    if unknown or not has_browser:
        missing = f"no picture {unknown[0]}" if unknown else f"none of {', '.join(BROWSERS)} is installed"
        print(f"No pictures: {missing}; known are {', '.join(PICTURES)}.", file=sys.stderr)
        return 2
    for name in names or PICTURES:
        with tempfile.TemporaryDirectory(prefix="picture-") as folder:
            PICTURES[name](Path(folder), HERE / f"{name}.png")
        print(f"Made {HERE / name}.png.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
