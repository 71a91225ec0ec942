"""The command report, as a user runs it."""

from __future__ import annotations

import csv
import json
import re
from html import escape
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from args import UserError
from lab.report import read_runs
from reporting.measures.saber import game_rows
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


def _evaluation(folder: Path, game: str, mean: float, sticky: float, **others: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    scores = {name: {"mean": mean * part} for name, part in (("5min", 0.5), ("30min", 0.75), ("saber", 1))}
    document = {f"score_{name}": score for name, score in scores.items()}
    settings = {"agent": "iqn", "proba_sticky_actions": sticky, **others}
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
    assert "P(strong > weak) = 100.0 % (100.0 to 100.0), over 2 games of both" in said
    assert "different games" not in said
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
    assert "both, SABER, over human, 1 game, 1 run: median 50.0 %" in said
    assert "both, whole episodes, over goal, 1 game, 1 run: median 100.0 %" in said
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
    assert [run.agent for run in runs] == [str(tmp_path / name / "scores.csv") for name in ("a", "b")]
    _evaluation(tmp_path / "scores", "pong", 10.0, 0.25)
    beside = read_runs([tmp_path / "scores", tmp_path / "a" / "scores.csv"])
    assert len({run.agent for run in beside}) == 2, "a folder, and a csv, of one name"


def test_folders_of_one_name_are_called_by_all_of_it(tmp_path: Path) -> None:
    """What follows a dot is the end of a csv's name, and no end of a folder's."""
    folders = [tmp_path / parent / f"seed.{number}" for parent in "ab" for number in (1, 2)]
    for folder in folders:
        _evaluation(folder, "pong", 10.0, 0.25)
    assert [run.agent for run in read_runs(folders)] == [*map(str, folders)]


def test_a_folder_of_evaluations(tmp_path: Path) -> None:
    """All three caps; published scores only beside play with their sticky actions."""
    _evaluation(tmp_path / "ours/session_0", "pong", 10.0, 0.25)
    _evaluation(tmp_path / "ours/session_1", "pong", 12.0, 0.25)
    _evaluation(tmp_path / "other", "pong", 12.0, 0.0)
    _evaluation(tmp_path / "ours/session_1/enjoy", "pong", 99.0, 0.25)  # five episodes of the best snapshot
    runs = read_runs([tmp_path / "ours", tmp_path / "other"])
    assert [(run.agent, run.scores) for run in runs[:2]] == [("ours", (5, 7.5, 10)), ("ours", (6, 9, 12))]
    assert len(runs) == 3
    ours, other = game_rows(runs)
    assert np.array(ours[3:6], float).tolist() == [5.5, 8.25, 11.0]
    assert float(str(ours[-1])) > 0 and other[-1] == ""


def test_agents_of_two_versions_stay_apart(tmp_path: Path) -> None:
    """By their folders' names; where there is one folder, or csv, their own are enough."""
    for version, agent in product(("v1", "v2"), ("iqn", "dqn")):
        _evaluation(tmp_path / version / agent, "pong", 10.0, 0.25, agent=agent)
    both = {run.agent for run in read_runs([tmp_path / "v1", tmp_path / "v2"])}
    assert both == {"v1/dqn", "v1/iqn", "v2/dqn", "v2/iqn"}
    assert {run.agent for run in read_runs([tmp_path / "v1"])} == {"dqn", "iqn"}
    table = tmp_path / "scores.csv"
    table.write_text("agent,game,seed,score\ndqn,pong,1,3\niqn,pong,1,3\n")
    assert {run.agent for run in read_runs([table, tmp_path / "v1"])} >= {"scores/dqn", "scores/iqn"}


@pytest.mark.parametrize("other", [{}, {"evaluation_episodes": 20}, {"seed": 7}])
def test_a_snapshot_is_one_run(other: dict[str, object], tmp_path: Path) -> None:
    """However often its game is played with it; in other games, and as another agent, it counts too."""
    alike: dict[str, object] = {"model_sha256": "a1", "evaluation_episodes": 100, "seed": 123}
    first, second = tmp_path / "mix/0", tmp_path / "mix/1"
    _evaluation(first, "pong", 10.0, 0.25, **alike)
    _evaluation(second, "pong", 10.0, 0.25, **{**alike, **other})
    names = " and ".join(str(each / "evaluation_pong.json") for each in (first, second))
    with pytest.raises(UserError, match=f"{re.escape(names)} are of the same snapshot, which would count as"):
        read_runs([tmp_path / "mix"])
    assert len(read_runs([first, second])) == 2, "a folder for each way to play"
    _evaluation(second, "pong", 10.0, 0.25, **{**alike, "model_sha256": "b2"})
    _evaluation(second, "breakout", 10.0, 0.25, **alike)
    _evaluation(second / "baseline", "pong", 10.0, 0.25, agent="random", model_sha256=None)
    assert len(read_runs([tmp_path / "mix"])) == 4


def test_earlier_evaluations_are_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _evaluation(tmp_path / "mix/0", "pong", 10.0, 0.25)
    earlier = tmp_path / "mix/0/earlier_evaluation_pong_1.json"
    earlier.write_text("{}")
    assert main(["report", str(tmp_path / "mix"), "--results", str(tmp_path / "out")]) == 0
    sentence = f"Left out, as a later evaluation took their place: {earlier}."
    assert f"\n{sentence}\n" in capsys.readouterr().out
    assert escape(sentence) in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize("other", [{"action_repeat": 1}, {"eval_noise": False}])
def test_protocols_are_not_averaged(other: dict[str, object], tmp_path: Path) -> None:
    """Neither of a game nor of ALE's games together; other games have settings of their own."""
    alike: dict[str, object] = {"action_repeat": 4, "eval_noise": True}
    _evaluation(tmp_path / "mix/0", "pong", 10.0, 0.25, **alike)
    _evaluation(tmp_path / "mix/1", "CartPole-v1", 10.0, 0.25, **{**alike, **other})
    _evaluation(tmp_path / "mix/2", "pong", 10.0, 0.25, **alike, seed=7, t_actors=9, model="other.pth")
    assert len(read_runs([tmp_path / "mix"])) == 3
    _evaluation(tmp_path / "mix/3", "breakout", 10.0, 0.25, **{**alike, **other})
    ((name, _),) = other.items()
    odd = f"--{name.replace('_', '-')} ({', '.join(sorted(map(str, (alike[name], other[name]))))})"
    sentence = re.escape(f"the evaluations of iqn on ALE's games differ in {odd}, so that they have no mean")
    with pytest.raises(UserError, match=sentence):
        read_runs([tmp_path / "mix"])


def test_games_are_known_by_any_of_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As --game takes them; a spreadsheet's headings may begin with capitals."""
    table = tmp_path / "some.csv"
    table.write_text("Game,Seed,Score\nPong,1,3\nALE/Pong-v5,2,4\nSpaceInvaders,1,500\nno:game,1,5\n")
    assert main(["report", str(table), "--results", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "some, SABER, over human, 2 games, 3 runs" in said and "known: no:game." in said


def test_a_misspelt_game_is_named_beside_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of those with a reference: journey_escape is a game, and has none."""
    table = tmp_path / "some.csv"
    games = "pong,Asterixx,CartPole-v2,own:game,journey_escape,Ms. Pac-Man,PongNoFrameskip-v4".split(",")
    table.write_text("game,score\n" + "".join(f"{game},3\n" for game in games))
    assert main(["report", str(table), "--results", str(tmp_path / "out")]) == 0
    named = (
        "Asterixx (asterix has one), CartPole-v2 (CartPole-v1 has one), Ms. Pac-Man (ms_pacman has one),"
        " PongNoFrameskip-v4 (pong has one), journey_escape, own:game."
    )
    assert f"In no aggregate, as no reference is known: {named}" in capsys.readouterr().out


def test_columns_that_are_not_read_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Agents under another heading count as one."""
    table = tmp_path / "some.csv"
    table.write_text("game,algorithm,score,Seed,\npong,dqn,3,1,\npong,iqn,5,2,\n")
    assert main(["report", str(table), "--results", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert f"{table}: columns that are not read: algorithm." in said
    assert "algorithm" in (tmp_path / "out/report.html").read_text()
    table.write_text("game,score\npong,3\n")
    assert main(["report", str(table), "--results", str(tmp_path / "out")]) == 0
    assert "not read:" not in capsys.readouterr().out


def test_agents_of_different_games(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line says so, since both counts are the same; the page has it too, and the comparison."""
    for name, game in (("one", "pong"), ("two", "freeway")):
        (tmp_path / f"{name}.csv").write_text(f"game,score\nbreakout,3\n{game},3\nown:{name},3\n")
    words = [*(str(tmp_path / f"{name}.csv") for name in ("one", "two")), "--compare", "one", "two"]
    assert main(["report", *words, "--results", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    remarks = (
        "In no aggregate, as no reference is known: own:one, own:two.",
        "These agents played different games: their aggregates are not comparable.",
        "P(one > two) = 50.0 %, over 1 game of both",
    )
    page = (tmp_path / "out/report.html").read_text()
    for sentence in remarks:
        assert sentence in said and f"<td>{escape(sentence)}</td>" in page


def test_outside_ale_only_whole_episodes_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody's five minutes are known there; of ALE's games all three times are shown."""
    _evaluation(tmp_path / "ours/0", "CartPole-v1", 475.0, 0.25)
    _evaluation(tmp_path / "ours/1", "pong", 10.0, 0.25)
    assert main(["report", str(tmp_path / "ours"), "--results", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(", ")[1] for line in lines if "over goal" in line] == ["whole episodes"]
    assert [line.split(", ")[1] for line in lines if "over human" in line] == ["5 min", "30 min", "SABER"]


def test_nothing_counts_twice(tables: list[Path], tmp_path: Path) -> None:
    """A file, or a row."""
    _evaluation(tmp_path / "ours/session_0", "pong", 10.0, 0.25)
    for paths in ([tables[0], tables[0]], [tmp_path / "ours", tmp_path / "ours/session_0"]):
        with pytest.raises(UserError, match="would count twice: name it, or a folder that it lies in, once"):
            read_runs(paths)
    table = tmp_path / "twice.csv"
    table.write_text("game,seed,score\npong,1,3\npong,2,3\npong,1,4\n")
    with pytest.raises(
        UserError, match=r"twice.csv, line 4: pong with seed 1 is there twice, first in line 2"
    ):
        read_runs([table])
    for other in ("01", "1.0", " 1"):
        table.write_text(f"game,seed,score\npong,1,3\npong,{other},3\n")
        with pytest.raises(UserError, match=f"line 3: pong with seed {other.strip()} is there twice"):
            read_runs([table])
    table.write_text("game,seed,score\npong,1,3\npong,1.5,3\npong,a1,3\npong,a01,3\n")
    assert len(read_runs([table])) == 4, "other seeds"
    table.write_text("game,seed,score\npong,,3\npong,,3\n")
    assert len(read_runs([table])) == 2, "rows without seeds"
    table.write_text(",game,seed,score\n0,pong,1,3\n1,pong,2,3\n")
    assert len(read_runs([table])) == 2, "a column without a name, as pandas writes its index"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("pong,3,nan", "line 3: score got 'nan': input should be a finite number."),
        ("pong,3,", "line 3: score got '': input should be a valid number"),
        ("pong,3,ten", "line 3: score got 'ten': input should be a valid number"),
        ('pong,3,"1,000"', "line 3: score got '1,000': input should be a valid number"),
        ("pong,3,1,000", "line 3: it has more cells than there are columns."),
        ("pong,3", "line 3: it has fewer cells than there are columns."),
        (",3,1", "line 3: game got '': string should have at least 1 character."),
    ],
)
def test_a_wrong_row_is_named(row: str, sentence: str, tmp_path: Path) -> None:
    """By its line and value."""
    table = tmp_path / "some.csv"
    table.write_text(f"game,seed,score\npong,1,3\n{row}\n")
    with pytest.raises(UserError, match=re.escape(f"{table}, {sentence}")):
        read_runs([table])


def test_a_row_without_an_agent_beside_others_is_named(tmp_path: Path) -> None:
    """By its line; where no row has one, the file's name is the agent's."""
    table = tmp_path / "some.csv"
    table.write_text("agent,game,score\ndqn,pong,1\n,pong,2\n")
    with pytest.raises(UserError, match=r"some.csv, line 3: agent is empty, though other rows name theirs"):
        read_runs([table])
    table.write_text("agent,game,score\n,pong,1\n,pong,2\n")
    assert {run.agent for run in read_runs([table])} == {"some"}


def test_mistakes_are_one_sentence(
    tables: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 2."""
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("game,points\npong,3\n")
    misspelt = tmp_path / "misspelt.csv"
    misspelt.write_text("game,Sede,score,steps\npong,1,3,9\n")
    two_scores = tmp_path / "two_scores.csv"
    two_scores.write_text("game,score,Score\npong,3,4\n")
    (tmp_path / "empty").mkdir()
    for words, sentence in (
        ([str(wrong)], "it needs the columns game and score"),
        ([str(tmp_path / "empty")], "holds no score"),
        ([str(tables[0]), "--compare", "strong", "nobody"], "choose among strong"),
        ([str(misspelt)], "misspelt.csv has a column sede, and none called seed: rename it."),
        ([str(two_scores)], "two_scores.csv has several columns score: leave one."),
        ([*map(str, tables), "--compare", "weak", "weak"], "--compare weak weak: name two agents."),
        ([str(tables[0]), "--results", str(wrong)], f"Nothing can be written to {wrong} (File exists)"),
        ([str(tables[0]), "--results", "/proc/some"], "Nothing can be written to /proc/some (No such file"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["report", "--results", str(tmp_path / "out"), *words])
        assert ended.value.code == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
