"""HalfCheetah, which comes with the extra mujoco: it is learned from and filmed by the programs."""

from __future__ import annotations

from pathlib import Path

import cv2
import pytest

from learning.saved.snapshot import load_snapshot
from reporting.model_files import last_models
from tests.processes import ONE_THREAD, ROOT, run

pytest.importorskip("mujoco")
GAME = "HalfCheetah-v5"


def test_halfcheetah_is_learned_from(redis_socket: str, tmp_path: Path) -> None:
    spec = ROOT / "specs" / "classic" / "halfcheetah_naf.yaml"
    short = "--serial --T-max 600 --learn-start 200 --log-interval 100".split()
    place = ("--host-redis", redis_socket, "--path-to-results", tmp_path)
    run("launch_learner.py", "--spec", spec, *short, *place, log=tmp_path / "log")
    snapshot = load_snapshot(last_models(tmp_path, GAME)[0])
    assert snapshot["t_actors"] >= 600 and snapshot["updates"] >= 150


def test_halfcheetah_is_filmed_without_a_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(ONE_THREAD, "DISPLAY", raising=False)
    film = tmp_path / "cheetah.mp4"
    words = f"--game {GAME} --agent random --evaluation-episodes 1 --max-episode-steps 20".split()
    run(
        "test_multiple_seed.py", *words, "--record", film, "--path-to-results", tmp_path, log=tmp_path / "log"
    )
    there_is, picture = cv2.VideoCapture(str(film)).read()
    assert there_is and picture.std() > 10, "floor, sky and cheetah"
