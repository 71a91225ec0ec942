"""The page in a real browser beside a real run, read by a user that may only read."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, Page, sync_playwright

from memory.runs.access import acl_lines
from memory.server.connection import Client
from reporting.pages.page import find_browser
from tests.processes import ONE_THREAD, PATIENCE_S, start, until

RUN = (
    "--game probe:catch --spec specs/classic/catch_iqn.yaml --T-max 10000000 --log-interval 1000"
    " --hidden-size 16"
).split()
QUIET = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
).split()
PASSWORD = "reads only"
POINTS = "document.querySelector('#graph-scores-0 .js-plotly-plot')?._fullData?.[0]?.x?.length ?? 0"
STEPS = (  # of the run that goes on: the server may hold others, which other tests have ended
    "[...document.querySelectorAll('#table-runs tbody tr')]"
    ".find(row => row.textContent.includes('probe:catch'))?.cells[4]?.textContent ?? ''"
)


@contextmanager
def ended(*processes: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)


@contextmanager
def browser_page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=QUIET)
        except Error as error:
            pytest.fail(f"No browser can be started: EXTRAS='page page-test' bash scripts/setup.sh ({error})")
        yield browser.new_page(viewport={"width": 1400, "height": 1000})
        browser.close()


def address_in(log: Path) -> str:
    """Of the page, once it has said it."""
    found: list[str] = []

    def is_there() -> bool:
        found[:] = re.findall(r"http://\S+", log.read_text() if log.exists() else "")
        return bool(found)

    until(is_there, lambda: log.read_text())
    return found[0]


def wait_for(page: Page, condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: {page.inner_text('body')}"
        page.wait_for_timeout(200)


def open_pane(page: Page, name: str, shows: str) -> Any:
    page.locator(".tab", has_text=name).click()
    page.wait_for_selector(shows, timeout=PATIENCE_S * 1000)


@pytest.mark.slow
def test_curves_grow_in_a_browser_while_a_run_goes_on(
    redis_socket: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = next(line for line in acl_lines("{*}:") if line.startswith("user viewer")).split()[1:]
    client.execute_command("ACL", "SETUSER", *viewer, f">{PASSWORD}")
    where = ["--host-redis", redis_socket, "--path-to-results", tmp_path]
    learner = start("launch_learner.py", *RUN, *where, log=tmp_path / "learner")
    actor = start("launch_actor.py", *RUN, *where, log=tmp_path / "actor")
    monkeypatch.setitem(ONE_THREAD, "REDIS_PASSWORD", PASSWORD)
    served = start("live_page.py", *where, "--page-port", 0, "--user-redis", "viewer", log=tmp_path / "page")
    with ended(served, actor, learner), browser_page() as page:
        complaints, asked = list[str](), list[str]()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        address = address_in(tmp_path / "page")
        page.goto(address)
        _look_at_all(page, tmp_path)
        assert complaints == []
        outside = [url for url in asked if not url.startswith((address, "data:", "blob:"))]
        assert outside == [], "it needs no other machine"
        assert not re.search(r"cannot be read|Traceback", (tmp_path / "page").read_text())


def _look_at_all(page: Page, folder: Path) -> None:
    wait_for(page, lambda: page.evaluate(POINTS) > 3, "a curve of scores")
    points, steps = page.evaluate(POINTS), page.evaluate(STEPS)
    wait_for(page, lambda: page.evaluate(POINTS) > points, "a curve that grows")
    wait_for(page, lambda: page.evaluate(STEPS) != steps, "a table that is kept up")
    wait_for(page, lambda: "learning" in page.inner_text("#table-runs"), "a run that learns")
    for name, shows in (
        ("Learning", "#graph-learning .trace"),
        ("Replay", "#graph-priorities .trace"),
        ("Actors and time", "#graph-ages .trace"),
        ("What the agent sees", "#graph-values .trace"),
        ("Settings", "#table-settings"),
    ):
        open_pane(page, name, shows)
        page.screenshot(path=folder / f"{name}.png", full_page=True)
    assert "probe:catch" in page.inner_text("#table-settings")
    open_pane(page, "What the agent sees", "#graph-values .trace")
    assert page.locator("img.frame").count() == 4
    assert {"left", "stay", "right"} <= set(page.inner_text("#graph-values").split())
    assert page.inner_text("#trouble") == ""


@pytest.mark.slow
def test_start_learning_serves_the_page_and_ends_it(tmp_path: Path) -> None:
    flags = [*RUN, "--page", "true", "--page-port", 0, "--host-redis", tmp_path / "socket"]
    learning = start("start_learning.py", *flags, "--path-to-results", tmp_path, log=tmp_path / "log")
    with ended(learning):
        address = address_in(tmp_path / "log")
        with browser_page() as page:
            page.goto(address)
            wait_for(page, lambda: "probe:catch" in page.inner_text("#overview"), "the run")
    assert learning.returncode == 0
    with browser_page() as page, pytest.raises(Error, match="REFUSED"):
        page.goto(address)


@pytest.mark.slow
def test_without_a_token_another_address_is_not_listened_at(redis_socket: str, tmp_path: Path) -> None:
    where = ["--host-redis", redis_socket, "--path-to-results", tmp_path, "--page-host", "0.0.0.0"]
    with ended(start("live_page.py", *where, "--page-port", 0, log=tmp_path / "page")):
        address = address_in(tmp_path / "page").replace("0.0.0.0", "127.0.0.1")
        bare, _, token = address.partition("?token=")
        assert len(token) >= 32
        command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}"]
        codes = [
            subprocess.check_output([*command, url], text=True) for url in (bare, address, bare + "?token=x")
        ]
    assert codes == ["401", "200", "401"]


@pytest.mark.slow
def test_a_port_in_use_is_a_sentence(redis_socket: str, tmp_path: Path) -> None:
    where = ["--host-redis", redis_socket, "--path-to-results", tmp_path]
    with ended(start("live_page.py", *where, "--page-port", 0, log=tmp_path / "page")):
        port = address_in(tmp_path / "page").rstrip("/").rpartition(":")[2]
        second = start("live_page.py", *where, "--page-port", port, log=tmp_path / "second")
        assert second.wait(60) == 2
    said = (tmp_path / "second").read_text()
    assert said == f"error: The page cannot listen at 127.0.0.1:{port}: check --page-host and --page-port.\n"
