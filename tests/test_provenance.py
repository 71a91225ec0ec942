import json
import subprocess
from pathlib import Path

import pytest

from wiring.record.provenance import write_run_json


def test_run_json_says_how_to_do_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "do not tell")
    path = tmp_path / "run_pong.json"
    arguments = {"game": "pong", "path_to_results": tmp_path, "lr": 5e-5, "model": None}
    write_run_json(path, arguments, 123, ["launch_learner.py", "--game", "pong"], 7, gpu="a GPU")
    run = json.loads(path.read_text())
    assert run["arguments"] == {"game": "pong", "path_to_results": str(tmp_path), "lr": 5e-5, "model": None}
    assert run["seed"] == 123 and run["began"] == 7
    assert run["command"] == ["launch_learner.py", "--game", "pong"]
    assert run["packages"]["numpy"]
    assert run["machine"]["gpu"] == "a GPU"
    assert run["machine"]["memory_gib"] > 0
    assert "do not tell" not in path.read_text()


def test_commit_is_that_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "first"], check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    monkeypatch.setattr("wiring.record.provenance._REPOSITORY", tmp_path)
    assert commit_after_run(tmp_path / ".git" / "run.json") == {"hash": head, "dirty": False}
    (tmp_path / "changed.py").write_text("")
    assert commit_after_run(tmp_path / ".git" / "run.json") == {"hash": head, "dirty": True}


def test_no_commit_outside_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wiring.record.provenance._REPOSITORY", tmp_path / "nowhere")
    assert commit_after_run(tmp_path / "run.json") is None


def commit_after_run(path: Path) -> object:
    write_run_json(path, {}, 0, [], 0)
    return json.loads(path.read_text())["commit"]
