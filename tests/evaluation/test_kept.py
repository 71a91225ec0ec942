"""Snapshots that ship play, and stay small."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch

from args import UserError, checked_args, read_args
from envs.config import EnvConfig
from evaluation.evaluator import evaluate
from learning.saved.snapshot import load_snapshot
from rainbow_iqn_apex import load_policy
from test_multiple_seed import run_evaluation
from tests.processes import ROOT, run
from wiring.evaluating.candidates import snapshot_candidate
from wiring.record.kept import KEPT, kept_snapshots, with_kept

MEGABYTE = 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", kept_snapshots())
def test_each_plays_two_episodes(name: str, tmp_path: Path) -> None:
    """Of its game, as its agent."""
    row = kept_snapshots()[name]
    words = ("--kept", name, "--evaluation-episodes", 2, "--threads", 1, "--path-to-results", tmp_path)
    run("test_multiple_seed.py", *words, log=tmp_path / "log", timeout_s=300)
    (result,) = tmp_path.glob("evaluation_*.json")
    played = json.loads(result.read_text())
    assert (played["game"], played["settings"]["agent"], played["episodes"]) == (row["game"], row["agent"], 2)


def test_sizes() -> None:
    """Of snapshots and of the folder."""
    sizes = sorted((KEPT / row["snapshot"]).stat().st_size for row in kept_snapshots().values())
    assert sizes[-1] <= 10 * MEGABYTE
    assert all(size <= 3 * MEGABYTE for size in sizes[:-2])
    assert sum(path.stat().st_size for path in KEPT.rglob("*") if path.is_file()) <= 30 * MEGABYTE


def test_named_commits_are_in_the_history() -> None:
    """So that the command beside them can be run."""
    asked = ("git", "rev-parse", "--is-shallow-repository")
    if subprocess.run(asked, cwd=ROOT, capture_output=True, text=True).stdout.strip() != "false":
        pytest.skip("no repository, or not all of it")
    for row in kept_snapshots().values():
        if row["commit"]:
            subprocess.run(["git", "cat-file", "-e", f"{row['commit']}^{{commit}}"], cwd=ROOT, check=True)


def test_an_unknown_name_and_two_snapshots_are_mistakes() -> None:
    """One sentence each."""
    with pytest.raises(UserError, match="none of those that ship: cartpole_dqn"):
        with_kept(read_args(["--kept", "nothing"]))
    with pytest.raises(UserError, match="exclude each other"):
        with_kept(read_args(["--kept", "ms_pacman", "--model", "other.pth"]))


@pytest.mark.parametrize("agent", ["random", "constant:1"])
def test_chance_plays_no_snapshot(agent: str, tmp_path: Path) -> None:
    """Which of the two is meant cannot be known; a file that is not there is not looked for."""
    words = ["--agent", agent, "--game", "CartPole-v1", "--path-to-results", str(tmp_path)]
    for named in (["--model", "none.pth"], ["--kept", "cartpole_dqn"]):
        sentence = f"--agent {agent} plays without a snapshot: leave it or {named[0]} out."
        with pytest.raises(UserError, match=sentence):
            run_evaluation(with_kept(read_args([*words, *named])))


def test_a_policy_from_python_has_the_scores_of_an_evaluation(tmp_path: Path) -> None:
    """Also where a share of its actions is random; here all are, so that no pole stands for long."""
    snapshot = load_snapshot(ROOT / "results" / "kept" / "cartpole" / "dqn.pth")
    snapshot["settings"]["evaluation_epsilon"] = 1.0
    torch.save(snapshot, tmp_path / "dqn.pth")
    candidate = snapshot_candidate(checked_args({"model": str(tmp_path / "dqn.pth")}))
    scores = evaluate(candidate.policy, candidate.args.select(EnvConfig), 3, 123, 3).scores
    assert max(scores) < 200 and tuple(load_policy(tmp_path / "dqn.pth").play(3)) == scores
