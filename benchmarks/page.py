"""What the live page costs the run that it looks at: `python -m benchmarks.page` (extras page and page-test).

The page's process spends processor time, and so does Redis for the page's reads. Both are compared with what
learner, actor and Redis spend on the run. A busy machine changes that much less than it changes speeds. In
every other window the page is stopped (SIGSTOP): Redis's time for a step differs by the page's reads.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.table import Table

from benchmarks.harness import Effort, processor_seconds, throwaway_server
from benchmarks.loops import launchers, python, waited_for
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client, RedisConfig, make_client
from reporting.pages.page import find_browser

SPEC = "specs/classic/catch_iqn.yaml"
RUN = "looked-at"
ENDLESS = f"--T-max 1000000000 --nb-actor 1 --run {RUN} --threads 1".split()
ADDRESS = re.compile(r"http://\S+")
NOBODY = "nobody looks"
VIEWS = (NOBODY, "Scores", "Learning", "Replay", "Actors and time", "What the agent sees", "Settings")
REST_S, AT_REST, PACE_S = 2.0, 0.02, 20.0
"""A page that spends less than this share of a core has drawn the view that was opened. Drawing it the first
time, and loading PyTorch for that, are no part of what it costs from then on. After some more seconds it has
measured what a refresh costs, and spaces them out.
"""


class Window(NamedTuple):
    """Seconds of processor time, in so many seconds of the clock."""

    seconds: float
    steps: float  # of the run
    page: float
    redis: float
    run: float  # learner and actor


class Cost(NamedTuple):
    """Processor seconds per second of the clock, 1 is a core."""

    page: float
    redis: float  # for the page's reads
    run: float  # learner, actor, and Redis without the page

    @property
    def share(self) -> float:
        """The page's cost as a share of what the run spends."""
        return (self.page + self.redis) / self.run


def cost(looking: Sequence[Window], resting: Sequence[Window]) -> Cost:
    """The cost of the page, from windows with it and without it."""
    shown, hidden = total(looking), total(resting)
    redis_of_run = hidden.redis / hidden.steps * shown.steps
    return Cost(
        shown.page / shown.seconds,
        (shown.redis - redis_of_run) / shown.seconds,
        (shown.run + redis_of_run) / shown.seconds,
    )


def total(windows: Sequence[Window]) -> Window:
    """The sum of windows."""
    return Window(*map(sum, zip(*windows, strict=True)))


class Meter:
    """Takes windows of a run beside a page."""

    def __init__(self, client: Client, page: int, run: Sequence[int]) -> None:
        """`page`, `run`: numbers of their processes."""
        self._client, self._page, self._run = client, page, run
        self._redis = int(client.info("server")["process_id"])

    def window(self, seconds: float) -> Window:
        """Measure a window that begins now."""
        before = self._now()
        time.sleep(seconds)
        return Window(*(late - early for late, early in zip(self._now(), before, strict=True)))

    def settle(self) -> None:
        """Wait until the page has drawn its view, and spaces out its refreshes."""
        while self.window(REST_S).page > AT_REST * REST_S:
            pass
        time.sleep(PACE_S)

    def _now(self) -> Window:
        steps = read_counters(self._client, Keys(RUN)).steps
        page, redis, *run = map(processor_seconds, (self._page, self._redis, *self._run))
        return Window(time.monotonic(), steps, page, redis, sum(run))


def measure(meter: Meter, page: int, show: Callable[[str], None], view: str, effort: Effort) -> Cost:
    """The cost of one view, from windows with the page and without it in turns."""
    looking, resting = list[Window](), list[Window]()
    for _ in range(effort.rounds):
        os.kill(page, signal.SIGCONT)
        show(view)
        meter.settle()
        looking.append(meter.window(effort.seconds))
        show(NOBODY)
        os.kill(page, signal.SIGSTOP)
        resting.append(meter.window(effort.seconds))
    os.kill(page, signal.SIGCONT)
    return cost(looking, resting)


@contextlib.contextmanager
def browser(address: str) -> Iterator[Callable[[str], None]]:
    """Opens views of the page, each as a person would; NOBODY leaves it."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1300, "height": 900})
        yield lambda view: _open(page, address, view)
        chromium.close()


def _open(page: Page, address: str, view: str) -> None:
    if view == NOBODY:
        page.goto("about:blank")
        return
    page.goto(address)
    page.locator(".tab", has_text=view).click()


def costs(
    redis: RedisConfig, folder: Path, words: str, views: Sequence[str], effort: Effort
) -> Iterator[tuple[str, Cost]]:
    """The cost of each view, to a run of these flags."""
    client, server = make_client(redis), ["--host-redis", redis.host_redis]
    learner, actor = launchers([*words.split(), *ENDLESS, *server], folder, 1)
    page = python(
        ["live_page.py", "--page-port", "0", *server, "--path-to-results", str(folder)], folder, "page", 1
    )
    with contextlib.ExitStack() as stack:
        for child in (learner, actor, page):
            child.start()
            stack.callback(child.kill)
        (address,) = waited_for(lambda: ADDRESS.findall(page.spec.log.read_text()), [page])
        waited_for(lambda: read_counters(client, Keys(RUN)).batches > 0, [learner, actor])
        meter, show = Meter(client, page.pid, (learner.pid, actor.pid)), stack.enter_context(browser(address))
        for view in views:
            yield view, measure(meter, page.pid, show, view, effort)


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(description="What the live page costs the run that it looks at.")
    parser.add_argument("--flags", default=f"--spec {SPEC}", help="of the run, in quotes")
    parser.add_argument("--turns", type=int, default=3, help="windows with the page, and as many without it")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each")
    options = parser.parse_args(argv)
    sheet = Table("view", "page, % of a core", "Redis for it", "run, % of a core", "cost, % of the run")
    with throwaway_server() as redis, tempfile.TemporaryDirectory(prefix="page-") as folder:
        effort = Effort(options.turns, options.seconds)
        for view, found in costs(redis, Path(folder), options.flags, VIEWS, effort):
            sheet.add_row(view, *(f"{100 * figure:.2f}" for figure in (*found, found.share)))
    Console(width=110).print(sheet)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
