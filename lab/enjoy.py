"""Mode enjoy: a trained model plays, in a window or on film."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from args import UserError
from lab.session_result import SessionResult, sessions_in
from lab.spec import Experiment

EVALUATE = Path(__file__).resolve().parents[1] / "test_multiple_seed.py"
EPISODES = 5
"""Of which the film shows the one with the median score."""


def enjoy(experiment: Experiment, root: Path) -> int:
    """Play the model of the best session; the exit code of the play. Raises UserError where there is none."""
    best = _best(experiment, root)
    model = _model(best.folder)
    film = best.folder / "enjoy.mp4"
    shown = ["--render"] if os.environ.get("DISPLAY") else ["--record", str(film)]
    words = ["--model", str(model), "--game", best.game, "--evaluation-episodes", str(EPISODES)]
    where = ["--path-to-results", str(best.folder)]
    return subprocess.run([sys.executable, str(EVALUATE), *words, *where, *shown]).returncode


def _best(experiment: Experiment, root: Path) -> SessionResult:
    trials = [root / experiment.name / mode for mode in ("train", "benchmark", "search")]
    results = [result for mode in trials for trial in sorted(mode.glob("*")) for result in sessions_in(trial)]
    scored = [result for result in results if result.score == result.score and _models(result.folder)]
    if not scored:
        raise UserError(
            f"{experiment.where}: {root / experiment.name} holds no trained model; run it in mode train."
        )
    return max(scored, key=lambda result: result.score)


def _models(folder: Path) -> list[Path]:
    """The best one first."""
    return [*folder.glob("best_model_*.pth"), *folder.glob("last_model_*.pth")]


def _model(folder: Path) -> Path:
    return _models(folder)[0]
