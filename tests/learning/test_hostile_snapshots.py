"""Files that torch reads without complaint, and that are no snapshot to go on from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from learning.snapshot import SnapshotError, load_snapshot, save_snapshot


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
