"""Who may write to a results folder, what it never removes there, and what a resume takes from it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from learning.saved import lock as lock_module
from learning.saved.folder import SnapshotFolder, newest_snapshot
from learning.saved.lock import FolderLock, FolderTaken
from learning.saved.snapshot import Snapshot, load_snapshot, save_snapshot
from tests.processes import ROOT, until

HOLD = """
import sys, time
from pathlib import Path
from learning.saved.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]), "pong").acquire(lambda epoch: False, lambda: False)
lock.name_epoch(7)
print("held", flush=True)
time.sleep(600)
"""


def _snapshot(updates: int, t_actors: int, epoch: int) -> Snapshot:
    counts = {"updates": updates, "t_learner": 0, "t_actors": t_actors, "epoch": epoch}
    parts = {"settings": {"agent": "iqn"}, "agent_state": {}, "acting_weights": {"w": torch.ones(2)}}
    return {**parts, **counts, "best_mean": None, "best_episodes": 0}


def _lock(folder: Path, replaced: int = 0, file_name: str = "pong") -> FolderLock:
    return FolderLock(folder, file_name).acquire(lambda epoch: epoch == replaced, lambda: False)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.pth"))


def _newest(folder: Path) -> Snapshot:
    snapshot = newest_snapshot(folder, "pong", {"agent": "iqn"})
    assert snapshot is not None
    return snapshot


def test_the_newest_snapshot_replaces_the_others_of_its_game(tmp_path: Path) -> None:
    for file_name, steps in (("pong", 9), ("pong_2", 9), ("pong", 10)):
        lock = _lock(tmp_path, file_name=file_name)
        SnapshotFolder(tmp_path, file_name, lock).save(_snapshot(1, steps, 1))
        lock.release()
    assert _names(tmp_path) == ["last_model_pong_10.pth", "last_model_pong_2_9.pth"]


def test_what_a_killed_learner_had_half_written_goes_after_an_hour(tmp_path: Path) -> None:
    old, new = tmp_path / ".replay_pong.dump.12.tmp", tmp_path / ".last_model_pong_9.pth.13.tmp"
    for path, age in ((old, 4000), (new, 10)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
    SnapshotFolder(tmp_path, "pong", _lock(tmp_path))
    assert not old.exists() and new.exists(), "another learner's may be written just now"


def test_a_lock_ends_with_its_process_and_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two learners without a Redis in common: the second is refused while the first lives."""
    monkeypatch.setattr(lock_module, "ENDING_S", 0.5)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(FolderTaken, match=f"process {holder.pid} on .* writes to .*--path-to-results"):
            _lock(tmp_path)
        _lock(tmp_path, file_name="breakout").release()
        before = (tmp_path / ".pong.lock").stat().st_ino
        holder.kill()
        holder.wait()
        until(lambda: _lock(tmp_path).is_ours, lambda: "the lock outlived its process")
        assert (tmp_path / ".pong.lock").stat().st_ino == before
    finally:
        holder.kill()
        holder.wait()


def test_one_that_was_replaced_puts_its_own_beside_and_removes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a half-open connection: it wakes up, with less learning than its successor or with more."""
    first_lock = _lock(tmp_path)
    first_lock.name_epoch(7)
    first = SnapshotFolder(tmp_path, "pong", first_lock)
    first.save(_snapshot(98, 500, 7))
    second_lock = _lock(tmp_path, replaced=7)
    assert second_lock.is_ours and not first_lock.is_ours
    second = SnapshotFolder(tmp_path, "pong", second_lock)
    second.save(_snapshot(1413, 6000, 8))
    for updates, steps in ((98, 500), (2000, 9000)):
        first.save(_snapshot(updates, steps, 7), best=True)
        first.save_emergency(_snapshot(updates, steps, 7))
    assert _names(tmp_path) == [
        "last_model_pong_6000.pth",
        "superseded_pong_9000_7.pth",
    ]
    assert _newest(tmp_path)["updates"] == 1413
    assert "the 98 updates of this one are in superseded_pong_500_7.pth, which no resume reads" in caplog.text
    second.save(_snapshot(1500, 6400, 8))
    assert _names(tmp_path) == ["last_model_pong_6400.pth", "superseded_pong_9000_7.pth"]


@pytest.mark.parametrize(("updates", "epoch"), [(50, 9), (101, 1)], ids=["newer epoch", "more learning"])
def test_a_strangers_file_is_never_overruled(updates: int, epoch: int, tmp_path: Path) -> None:
    """Where there are no locks: what another process wrote meanwhile stays, of whatever name."""
    lock = _lock(tmp_path)
    folder = SnapshotFolder(tmp_path, "pong", lock)
    folder.save(_snapshot(90, 400, 7))
    for steps in (400, 300):
        save_snapshot(tmp_path / f"last_model_pong_{steps}.pth", _snapshot(updates, steps, epoch))
        folder.save(_snapshot(100, 400, 7))
        assert load_snapshot(tmp_path / f"last_model_pong_{steps}.pth")["epoch"] == epoch
        assert load_snapshot(tmp_path / "superseded_pong_400_7.pth")["updates"] == 100
        (tmp_path / f"last_model_pong_{steps}.pth").unlink()


def test_a_strangers_file_of_less_learning_is_an_older_one(tmp_path: Path) -> None:
    lock = _lock(tmp_path)
    folder = SnapshotFolder(tmp_path, "pong", lock)
    save_snapshot(tmp_path / "last_model_pong_300.pth", _snapshot(20, 300, 6))
    (tmp_path / "last_model_pong_301.pth").write_bytes(b"being written by another program")
    folder.save(_snapshot(100, 400, 7))
    assert _names(tmp_path) == ["last_model_pong_301.pth", "last_model_pong_400.pth"]


def test_the_resume_takes_an_emergency_only_if_it_is_whole_and_newer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lock = _lock(tmp_path)
    folder = SnapshotFolder(tmp_path, "pong", lock)
    folder.save(_snapshot(100, 400, 7))
    path = folder.save_emergency({**_snapshot(90, 500, 7), "ended_by": "OSError: x"})
    assert _newest(tmp_path)["updates"] == 100 and "Resuming from" not in caplog.text
    path = folder.save_emergency({**_snapshot(110, 440, 7), "ended_by": "KeyError: 'tau'"})
    assert _names(tmp_path) == ["emergency_pong_440.pth", "last_model_pong_400.pth"]
    assert _newest(tmp_path)["updates"] == 110
    assert (
        f"{path} is newer than the last good snapshot: a learner saved it when KeyError: 'tau'" in caplog.text
    )
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert _newest(tmp_path)["updates"] == 100 and f"{path} is damaged" in caplog.text
    path.write_bytes(whole)
    folder.save(_snapshot(120, 480, 7))
    assert _names(tmp_path) == ["last_model_pong_480.pth"], "a later snapshot replaces both"


def test_epochs_go_on_above_those_of_all_files(tmp_path: Path) -> None:
    """A clock that was set back, say: otherwise a resumed run's own snapshots would go beside."""
    save_snapshot(tmp_path / "last_model_pong_400.pth", _snapshot(100, 400, 7))
    save_snapshot(tmp_path / "last_model_pong_300.pth", _snapshot(50, 300, 9))
    newest = _newest(tmp_path)
    assert (newest["updates"], newest["epoch"]) == (100, 9)
