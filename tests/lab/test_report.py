"""The command report, as a user runs it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from lab.report import read_runs
from reporting.pages.saber_page import game_rows
from run_lab import main

GAMES = {"pong": (-20.7, 14.6), "breakout": (1.7, 30.5)}  # random, human


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    """Of two agents, three seeds each; the first is better by 0.4 of a human everywhere."""
    paths = []
    for name, level in (("strong", 0.9), ("weak", 0.5)):
        rows = [("game", "seed", "score")]
        for game, (random, human) in GAMES.items():
            rows += [(game, str(n), str(random + (human - random) * (level + n / 100))) for n in range(3)]
        paths.append(tmp_path / f"{name}.csv")
        with paths[-1].open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return paths


def _evaluation(folder: Path, game: str, mean: float, sticky: float) -> None:
    folder.mkdir(parents=True)
    scores = {name: {"mean": mean * part} for name, part in (("5min", 0.5), ("30min", 0.75), ("saber", 1))}
    document = {f"score_{name}": score for name, score in scores.items()}
    settings = {"agent": "iqn", "proba_sticky_actions": sticky}
    (folder / f"evaluation_{game}.json").write_text(
        json.dumps({"game": game, **document, "settings": settings})
    )


def test_a_report_of_two_tables(
    tables: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Aggregates of the numbers that were put in; one agent always beats the other."""
    out = tmp_path / "out"
    assert main(["report", *map(str, tables), "--compare", "strong", "weak", "--results", str(out)]) == 0
    said = capsys.readouterr().out
    assert "strong, SABER, over human, 2 games, 6 runs: median 91.0 %" in said
    assert "P(strong > weak) = 100.0 % (100.0 to 100.0)" in said
    with (out / "report.csv").open() as file:
        rows = {(row["agent"], row["reference"]): row for row in csv.DictReader(file)}
    assert float(rows["weak", "human"]["iqm"]) == pytest.approx(0.51, abs=1e-6)
    assert float(rows["weak", "human"]["optimality_gap"]) == pytest.approx(0.49, abs=1e-6)
    page = (out / "report.html").read_text()
    assert "Performance profile" in page and "strong" in page
    assert (out / "report.png").read_bytes().startswith(b"\x89PNG")


def test_games_outside_ale_stand_by_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CartPole's goal is nobody's play: beside Pong there are two aggregates, each of one game."""
    table, out = tmp_path / "both.csv", tmp_path / "out"
    table.write_text("game,seed,score\npong,1,-3.05\nCartPole-v1,1,475\nunknown:game,1,3\n")
    assert main(["report", str(table), "--results", str(out)]) == 0
    said = capsys.readouterr().out
    assert "both, SABER, over human, 1 games, 1 runs: median 50.0 %" in said
    assert "both, SABER, over goal, 1 games, 1 runs: median 100.0 %" in said
    assert "In no aggregate, as no reference is known: unknown:game" in said
    with (out / "games.csv").open() as file:
        rows = {row["game"]: row for row in csv.DictReader(file)}
    assert [rows["CartPole-v1"][name] for name in ("human", "human_normalised", "goal")] == ["", "", "475"]
    assert [rows["pong"][name] for name in ("human", "goal", "goal_normalised")] == ["14.6", "", ""]


def test_a_comparison_needs_no_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which of two runs is better can be seen without one."""
    for name, score in (("one", 1), ("two", 2)):
        (tmp_path / f"{name}.csv").write_text(f"game,seed,score\nown:game,1,{score}\n")
    words = [*(str(tmp_path / f"{name}.csv") for name in ("one", "two")), "--compare", "two", "one"]
    assert main(["report", *words, "--results", str(tmp_path / "out")]) == 0
    assert "P(two > one) = 100.0 %" in capsys.readouterr().out


def test_tables_of_one_name_are_two_agents(tmp_path: Path) -> None:
    """And one that a spreadsheet wrote, with a mark before its first column, is read."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scores.csv").write_text("game,score\npong,1\n", encoding="utf-8-sig")
    runs = read_runs([tmp_path / "a" / "scores.csv", tmp_path / "b" / "scores.csv"])
    assert [run.agent for run in runs] == [str(tmp_path / name / "scores") for name in ("a", "b")]


def test_a_folder_of_evaluations(tmp_path: Path) -> None:
    """All three caps; published scores only beside play with their sticky actions."""
    _evaluation(tmp_path / "ours/session_0", "pong", 10.0, 0.25)
    _evaluation(tmp_path / "ours/session_1", "pong", 12.0, 0.25)
    _evaluation(tmp_path / "other", "pong", 12.0, 0.0)
    runs = read_runs([tmp_path / "ours", tmp_path / "other"])
    assert [(run.agent, run.scores) for run in runs[:2]] == [("ours", (5, 7.5, 10)), ("ours", (6, 9, 12))]
    ours, other = game_rows(runs)
    assert np.array(ours[3:6], float).tolist() == [5.5, 8.25, 11.0]
    assert float(str(ours[-1])) > 0 and other[-1] == ""


def test_mistakes_are_one_sentence(
    tables: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 2."""
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("game,points\npong,3\n")
    (tmp_path / "empty").mkdir()
    for words, sentence in (
        ([str(wrong)], "it needs the columns game and score"),
        ([str(tmp_path / "empty")], "holds no score"),
        ([str(tables[0]), "--compare", "strong", "nobody"], "choose among strong"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["report", *words, "--results", str(tmp_path / "out")])
        assert ended.value.code == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
