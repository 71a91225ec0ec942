"""What a learner resumes from: the newest readable snapshot, what its replay lacks, global generators."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from learning.snapshot import (
    Snapshot,
    SnapshotError,
    check_holds,
    check_origin,
    last_models,
    load_snapshot,
)
from memory.replay.replay import ReplayShape

log = logging.getLogger(__name__)

RESUMED = ("acting_weights", "updates", "t_actors", "best_mean", "best_episodes")
"""Parts that every learner resumes from, beside the state of its agent."""
POLL_EVERY_S = 0.5
"""How often a folder is looked at for its first snapshot."""


def newest_snapshot(
    folder: Path, file_name: str, expected: Mapping[str, object], needed: Sequence[str] = ()
) -> Snapshot | None:
    """The newest readable `last_model` snapshot of this game, or None.

    `needed`: parts that it must have beside RESUMED. A damaged one is named and the one before it used.
    Raises SnapshotError when it is of another agent, game or shape, or when all are damaged.
    """
    paths = last_models(folder, file_name)
    for path in paths:
        try:
            snapshot = load_snapshot(path)
        except SnapshotError as error:
            log.warning("%s", error)
            continue
        check_origin(path, snapshot, expected)
        if "agent_state" not in snapshot:
            raise SnapshotError(f"{path} holds weights only: begin a run from it with --model, elsewhere.")
        check_holds(path, snapshot, (*RESUMED, *needed))
        log.info("Resuming from %s; move it away to start afresh.", path)
        return snapshot
    if paths:
        raise SnapshotError(
            f"No snapshot in {folder} can be read; move the last_model files away to start afresh."
        )
    return None


def wait_for_snapshot(folder: Path, file_name: str, stopped: Callable[[], bool]) -> Snapshot | None:
    """The newest snapshot of this game in `folder`, once there is one; None when `stopped` first.

    Raises SnapshotError where there are snapshots of other games only.
    """
    announced = False
    while not stopped():
        for path in last_models(folder, file_name):
            with suppress(SnapshotError):  # it may be replaced while it is read
                return load_snapshot(path)
        if others := sorted(path.name for path in folder.glob("last_model_*.pth")):
            raise SnapshotError(f"{folder} holds {others[0]}, and none of {file_name}: is --game right?")
        if not announced:
            log.info("Waiting for a snapshot last_model_%s_*.pth in %s.", file_name, folder)
            announced = True
        time.sleep(POLL_EVERY_S)
    return None


def wanted_slots(snapshot: Snapshot | None, shape: ReplayShape) -> int:
    """Chunks that the replay held, or was to gather before learning continued, when `snapshot` was made."""
    return 0 if snapshot is None else min(int(snapshot["replay_slots"]), shape.slots)


def unlearned_steps(snapshot: Snapshot | None, t_actors: int, slack: int) -> int:
    """Steps not learned from yet when `snapshot` was made, and those played since; at most `slack`."""
    if snapshot is None:
        return 0
    return min(int(snapshot["owed_steps"]) + t_actors - int(snapshot["t_actors"]), slack)


def missing_transitions(
    snapshot: Snapshot | None, filled_slots: int, shape: ReplayShape, learn_start: int
) -> int:
    """Transitions to gather before learning continues.

    Once learning has begun, the replay must be as full as when the snapshot was made; before, learn_start.
    """
    learned = snapshot is not None and snapshot["updates"] > 0
    if snapshot is None or not learned:
        return max(learn_start - filled_slots * shape.chunk_length, 0)
    return max(wanted_slots(snapshot, shape) - filled_slots, 0) * shape.chunk_length


def global_generators() -> dict[str, Any]:
    """States of Python's, NumPy's and torch's global generators.

    Nothing here draws from them, but environments of other packages may.
    """
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),
        "torch": torch.get_rng_state(),
    }


def restore_global_generators(states: Mapping[str, Any]) -> None:
    """Continue from `global_generators()`."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
