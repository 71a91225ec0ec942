"""Run modes: trials of an experiment, what their sessions change, play of a trained model; schedules."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from args import Plain, UserError, read_args
from lab.files import ENJOYED
from lab.search.engine import check_search
from lab.session import SPEC, Session, SessionResult, sessions_in, trial_sessions
from lab.spec import Experiment, find_experiment
from reporting.model_files import last_models

MODES = ("dev", "train", "enjoy", "benchmark", "search")
DEV_STEPS = 1_000
"""Agent steps that mode dev plays after --learn-start: enough to see an agent act, learn, publish and save.
"""
DEV_EPISODE = 200
"""Agent steps after which mode dev truncates an ALE episode."""
EVALUATE = Path(__file__).resolve().parents[1] / "test_multiple_seed.py"
ENJOYED_EPISODES = 5
"""Episodes that mode enjoy plays. The film shows the one with the median score."""


def sessions_of(experiment: Experiment, mode: str, root: Path) -> list[Session]:
    """All sessions of a mode that trains, trial by trial. Raises UserError."""
    count = 1 if mode == "dev" else experiment.meta.sessions
    folder = root / experiment.name / mode
    trials = trials_of(experiment, mode).items()
    return [
        session
        for trial, changes in trials
        for session in trial_sessions(experiment, folder / trial, changes, count)
    ]


def trials_of(experiment: Experiment, mode: str) -> Mapping[str, Mapping[str, Plain]]:
    """Trial -> the flags that it changes, in a mode that trains. Raises UserError."""
    if mode == "dev":
        return {"trial_0": _dev(experiment)}
    if mode == "train":
        return {"trial_0": {}}
    if not experiment.meta.games:
        raise UserError(f"{experiment.where}: mode benchmark needs meta.games: list the games to play.")
    return {re.sub(r"[^\w.-]", "_", game): {"game": game} for game in experiment.meta.games}


def _dev(experiment: Experiment) -> dict[str, Plain]:
    """Short, in one process, every line shown, and the play in a window where there is a display.

    Of several games each has an actor of its own.
    """
    args = experiment.args()
    games = len(args.games)
    changes: dict[str, Plain] = {
        "T_max": min(args.T_max, args.learn_start + DEV_STEPS),
        "log_interval": DEV_STEPS // 10,
        "max_episode_steps": DEV_EPISODE,
        "serial": games == 1,
        "nb_actor": games,
        "shards": 1,
        "learners": 1,
    }
    return {**changes, "render": True} if os.environ.get("DISPLAY") else changes


def enjoy(experiment: Experiment, root: Path) -> int:
    """Play the model of the best session, in a window or on film; the exit code of the play.

    Raises UserError where there is none.
    """
    trials = [root / experiment.name / mode for mode in ("train", "benchmark", "search")]
    results = [result for mode in trials for trial in sorted(mode.glob("*")) for result in sessions_in(trial)]
    scored = [result for result in results if result.score == result.score and _models(result)]
    if not scored:
        raise UserError(
            f"{experiment.where}: {root / experiment.name} holds no trained model; run it in mode train."
        )
    best = max(scored, key=lambda result: result.score)
    shown = ["--render"] if os.environ.get("DISPLAY") else ["--record", str(best.folder / "enjoy.mp4")]
    words = ["--model", str(_models(best)[0]), *own_code_of(best.folder)]
    where = ["--evaluation-episodes", str(ENJOYED_EPISODES), "--path-to-results", str(best.folder / ENJOYED)]
    return subprocess.run([sys.executable, str(EVALUATE), *words, *where, *shown]).returncode


def own_code_of(folder: Path) -> list[str]:
    """The flags that an evaluation of a session needs beside its snapshot. Raises UserError."""
    return read_args(["--spec", str(folder / SPEC)]).own_code


def _models(result: SessionResult) -> list[Path]:
    """The best one first."""
    return [*result.folder.glob("best_model_*.pth"), *last_models(result.folder)]


class Task(NamedTuple):
    """One line of a schedule."""

    experiment: Experiment
    mode: str


def task_of(file: Path, name: str, mode: str) -> Task:
    """Raises UserError for an experiment or a mode that does not exist, or that lacks what it needs."""
    if mode not in MODES:
        raise UserError(f"There is no mode {mode}: choose one of {', '.join(MODES)}.")
    experiment = find_experiment(file, name)
    if mode == "search":
        check_search(experiment)
    return Task(experiment, mode)


def _named_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Raises ValueError: JSON would keep the last of several."""
    if twice := [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]:
        raise ValueError(f"{twice[0]} is there twice; name each once, or write another schedule")
    return dict(pairs)


def read_schedule(path: Path) -> list[Task]:
    """Spec files are named as seen from the present folder. Raises UserError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_named_once)
    except (OSError, ValueError) as error:
        raise UserError(f"The schedule {path} cannot be read: {error}.") from error
    shape = isinstance(document, dict) and all(isinstance(part, dict) for part in document.values())
    if not shape or not document:
        raise UserError(f"The schedule {path} must be {{spec file: {{experiment: mode}}}}.")
    return [
        task_of(Path(file), str(name), str(mode))
        for file, part in document.items()
        for name, mode in part.items()
    ]
