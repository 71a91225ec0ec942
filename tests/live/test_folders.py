"""Runs are found below a folder in which others write and remove."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from live.folders import DEEPEST, find_runs


def leave_run(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {"arguments": {"game": "pong", "run": ""}, "commit": None}
    (folder / "run_pong.json").write_text(json.dumps(document))


def test_runs_are_found_so_deep_and_behind_links(tmp_path: Path) -> None:
    folders = [tmp_path.joinpath(*"abcdefg"[:depth]) for depth in range(DEEPEST + 2)]
    for folder in folders:
        leave_run(folder)
    assert {run.path.parent for run in find_runs(tmp_path)} == set(folders[:-1])
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "link").symlink_to(folders[-1])
    assert [run.place for run in find_runs(tmp_path / "page")] == ["link"]


def test_folders_may_vanish_meanwhile(tmp_path: Path) -> None:
    leave_run(tmp_path / "kept")
    passing, stopped = [tmp_path / "passing" / str(number) for number in range(200)], threading.Event()

    def come_and_go() -> None:
        while not stopped.is_set():
            for folder in passing:
                folder.mkdir(parents=True)
            for folder in reversed(passing):
                folder.rmdir()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            assert [run.place for run in find_runs(tmp_path)] == ["kept"]
    finally:
        stopped.set()
        thread.join()
