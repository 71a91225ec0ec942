"""Run modes: which trials an experiment has, and what their sessions change."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from args import Plain, UserError
from lab.session import Session
from lab.spec import Experiment

MODES = ("dev", "train", "enjoy", "benchmark", "search")
DEV_STEPS = 1_000
"""Agent steps after --learn-start: enough to see an agent act, learn, publish and save."""
DEV_EPISODE = 200
"""Agent steps after which dev truncates an ALE episode."""


def sessions_of(experiment: Experiment, mode: str, root: Path) -> list[Session]:
    """All sessions of a mode that trains, trial by trial. Raises UserError."""
    sessions = 1 if mode == "dev" else experiment.meta.sessions
    seed = experiment.args().seed
    folder = root / experiment.name / mode
    return [
        Session(
            experiment,
            trial,
            number,
            {**changes, "seed": seed + number},
            folder / trial / f"session_{number}",
        )
        for trial, changes in _trials(experiment, mode).items()
        for number in range(sessions)
    ]


def _trials(experiment: Experiment, mode: str) -> Mapping[str, Mapping[str, Plain]]:
    """Trial -> the flags that it changes."""
    if mode == "dev":
        return {"trial_0": _dev(experiment)}
    if mode == "train":
        return {"trial_0": {}}
    if not experiment.meta.games:
        raise UserError(f"{experiment.where}: mode benchmark plays meta.games; name some.")
    return {re.sub(r"[^\w.-]", "_", game): {"game": game} for game in experiment.meta.games}


def _dev(experiment: Experiment) -> dict[str, Plain]:
    """Short, in one process, every line shown, and the play in a window where there is a display."""
    args = experiment.args()
    changes: dict[str, Plain] = {
        "T_max": min(args.T_max, args.learn_start + DEV_STEPS),
        "log_interval": DEV_STEPS // 10,
        "max_episode_steps": DEV_EPISODE,
        "serial": True,
    }
    return {**changes, "render": True} if os.environ.get("DISPLAY") else changes
