"""Files that torch reads without complaint, and that are no snapshot to go on from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from learning.saved.snapshot import SnapshotError, load_snapshot, save_snapshot
from memory.server.connection import Client
from reporting.model_files import last_models
from tests.processes import ONE_THREAD, ROOT, run, start


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(1).expand(10**15),
        torch.eye(3).to_sparse(),
        torch.empty(3, device="meta"),
    ],
    ids=["claims a petabyte", "sparse", "meta"],
)
def test_odd_tensors(tensor: torch.Tensor, tmp_path: Path) -> None:
    save_snapshot(tmp_path / "odd.pth", {"acting_weights": {"w": tensor}})
    with pytest.raises(SnapshotError, match="damaged"):
        load_snapshot(tmp_path / "odd.pth")


@pytest.mark.parametrize(
    "part",
    [
        {"best_mean": "x"},
        {"best_mean": float("nan")},
        {"updates": 10**40},
        {"epoch": 10**30},
        {"t_actors": -1},
    ],
)
def test_odd_parts(part: dict[str, Any], tmp_path: Path) -> None:
    save_snapshot(tmp_path / "odd.pth", part)
    with pytest.raises(SnapshotError, match=f"its {next(iter(part))} is not what it should be"):
        load_snapshot(tmp_path / "odd.pth")


def _shared(depth: int, part: Any) -> Any:
    for _ in range(depth):
        part = [part, part]
    return part


@pytest.mark.parametrize(
    "part",
    [_shared(40, 1), _shared(40, {"a": ()}), _shared(12, torch.zeros(1000)), [_shared(16, 0)] * 20],
    ids=["numbers", "dicts", "one tensor", "wide"],
)
def test_lists_that_share_their_parts(part: Any, tmp_path: Path) -> None:
    """A few kilobytes, and up to 2^40 values when they are walked through."""
    path = tmp_path / "shared.pth"
    torch.save({"format": 1, "agent_state": part}, path)
    began = time.monotonic()
    with pytest.raises(SnapshotError, match="damaged: its parts are shared too often"):
        load_snapshot(path)
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_a_snapshot_sets_no_flag_of_a_process_and_runs_no_code(
    client: Client, redis_socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes, and one snapshot of a real run whose settings a stranger has written."""
    small = "--game probe:catch --agent dqn --hidden-size 16 --memory-capacity 2000 --learn-start 64".split()
    place = ("--host-redis", redis_socket, "--path-to-results", tmp_path)
    learn = (*small, "--serial", "--threads", 1, *place, "--T-max", 80)
    run("launch_learner.py", *learn, log=tmp_path / "learner.log")
    (path,) = last_models(tmp_path, "probe_catch")
    monkeypatch.setitem(ONE_THREAD, "PYTHONPATH", f"{tmp_path}:{ROOT}")
    own, new, ran = load_snapshot(path), tmp_path / "new", tmp_path / "ran"
    (tmp_path / "strange.py").write_text(f"open({str(ran)!r}, 'w').close()")

    def said(script: str, *words: object, code: int) -> str:
        log = tmp_path / f"{script}.log"
        log.unlink(missing_ok=True)
        assert start(script, *words, log=log).wait(120) == code, log.read_text()
        assert not new.exists() and not ran.exists() and "Traceback" not in log.read_text()
        return log.read_text()

    def write(**settings: str) -> None:
        parts = {part: {**own[part], **settings} for part in ("settings", "config")}
        save_snapshot(path, {**own, **parts})

    evaluation = ("--model", path, "--path-to-results", tmp_path, "--evaluation-episodes", 1)
    write(game="probe:catch,strange:Env-v0")
    assert "code is run only where it is asked for" in said("test_multiple_seed.py", *evaluation, code=2)
    write(ckpt_dir=str(new))
    assert "sets 'ckpt_dir', which no learner shares" in said("test_multiple_seed.py", *evaluation, code=2)
    write(event_log_out=str(new))
    alone = ("--no-push", "--ckpt-dir", tmp_path, *small[:2], "--T-max", 20)
    assert "sets 'event_log_out', which no learner shares" in said("launch_actor.py", *alone, code=2)
    write(**dict.fromkeys(("event_log_out", "ckpt_dir", "path_to_results", "record", "model"), str(new)))
    assert f"Resuming from {path}" in said("launch_learner.py", *learn, "--T-max", 84, code=0)
