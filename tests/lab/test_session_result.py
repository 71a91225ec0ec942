"""What a session comes to that plays several games."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from args import UserError
from lab.results import report_experiment, report_trial
from lab.session import Curve, SessionRecord, SessionResult, fitness_of, read_session, write_record
from reporting.measures.fitness import standard_of
from reporting.tables import EpisodeRecord, EpisodeTable


def episodes_of(game: str, strength: float, count: int = 150) -> Curve:
    standard = standard_of(game)
    assert standard is not None
    scores = np.full(count, standard.random + strength * standard.range)
    return Curve(np.linspace(10, 10 * count, count), scores)


def playing(**strengths: float) -> SessionResult:
    episodes = {game: episodes_of(game, strength) for game, strength in strengths.items()}
    return SessionResult(
        Path("s"), SessionRecord("finished"), ",".join(strengths), 0, "", Curve(*np.zeros((2, 0))), episodes
    )


def test_fitness_over_games_is_the_mean_of_theirs() -> None:
    result = playing(pong=1.0, breakout=0.5)
    assert result.strength == pytest.approx(0.75)
    both, pong, breakout = (
        fitness_of([each] * 3) for each in (result, playing(pong=1.0), playing(breakout=0.5))
    )
    assert both is not None and pong is not None and breakout is not None
    assert both[:3] == pytest.approx((np.array(pong[:3]) + np.array(breakout[:3])) / 2)
    assert result.last_step == 1500
    early, late = episodes_of("pong", 0.0, 50), episodes_of("pong", 1.0, 100)
    improved = Curve(result.episodes["pong"].steps, np.append(early.scores, late.scores))
    better = result._replace(episodes={**result.episodes, "pong": improved})
    assert better.strength == pytest.approx(0.75) and better.game_scores["pong"] == pytest.approx(14.6)


def test_one_game_without_a_standard_leaves_no_fitness() -> None:
    pong = playing(pong=1.0)
    result = pong._replace(episodes={**pong.episodes, "unknown": pong.episodes["pong"]})
    assert fitness_of([result] * 3) is None and np.isnan(result.strength)


def test_a_trial_of_two_games_says_each_score(tmp_path: Path) -> None:
    """Of the files that a run leaves: four sessions of pong and breakout, the last much better."""
    experiment = tmp_path / "some" / "train"
    points = -20.0, -19.0, -18.0, -13.0
    for number, of_pong in enumerate(points):
        folder = experiment / "trial_0" / f"session_{number}"
        folder.mkdir(parents=True)
        write_record(folder, SessionRecord("finished"))
        (folder / "spec.yaml").write_text(f"# test\ngame: pong,breakout\nlr: 0.1\nseed: {number}\n")
        run = {
            "arguments": {"game": "pong,breakout"},
            "seed": number,
            "commit": {"hash": "abcdefgh", "dirty": False},
        }
        (folder / "run_pong,breakout.json").write_text(json.dumps(run))
        scores = [("pong", of_pong, False), ("breakout", 3.0, False), ("pong", 21.0, True)]
        EpisodeTable(folder / "pong,breakout.csv").add(
            EpisodeRecord(actor, 0, 0, 10, 0, score, score, score, 5, is_evaluation, game=game)
            for actor, (game, score, is_evaluation) in enumerate(scores)
        )
    assert read_session(experiment / "trial_0" / "session_1").game_scores == {"pong": -19.0, "breakout": 3.0}
    report_experiment(experiment)
    with (experiment / "experiment.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["score_by_game_points"] == "pong: -17.5; breakout: 3" and row["strength"] == "0.0"
    text = (experiment / "experiment.yaml").read_text()
    pong, breakout = standard_of("pong"), standard_of("breakout")
    assert pong is not None and breakout is not None
    strengths = [(pong.strength(each) + breakout.strength(3.0)) / 2 for each in points]
    known = json.loads((experiment / "experiment.json").read_text())
    assert known["iqm"] == pytest.approx(np.mean(strengths[1:3])), "but for the best and the worst"
    assert strengths[0] <= known["low"] < known["iqm"] < known["high"] <= strengths[3]
    assert "4 sessions have in common; commit: abcdefg" in text
    assert yaml.safe_load(text) == {"game": "pong,breakout", "lr": 0.1}


def test_a_session_that_failed_or_was_moved_away_says_nothing_of_its_agent(tmp_path: Path) -> None:
    """And one session alone has no interval."""
    experiment = tmp_path / "some" / "train"
    states = {"session_0": "finished", "session_1": "failed", "session_0_old": "finished"}
    for score, (name, state) in enumerate(states.items()):
        folder = experiment / "trial_0" / name
        folder.mkdir(parents=True)
        write_record(folder, SessionRecord(state))
        run = {"arguments": {"game": "pong"}, "seed": 1, "commit": None}
        (folder / "run_pong.json").write_text(json.dumps(run))
        count = 200 if state == "failed" else 1  # enough for a fitness
        EpisodeTable(folder / "pong.csv").add(
            EpisodeRecord(0, each, 0, 10 * (1 + each), 0, score, score, score, 5, game="pong")
            for each in range(count)
        )
    shutil.copytree(experiment / "trial_0" / "session_0", experiment / "trial_0" / "session_2")
    shutil.copytree(experiment / "trial_0" / "session_0", begun := experiment / "trial_0" / "session_3")
    (begun / "pong.csv").unlink()
    report_trial(experiment / "trial_0")
    page = (experiment / "trial_0" / "trial.html").read_text()
    assert "session 0" in page and "session 2" in page and "session 1" not in page
    assert page.count("no score yet") == 1
    shutil.rmtree(begun)
    shutil.rmtree(experiment / "trial_0" / "session_2")
    report_experiment(experiment)
    with (experiment / "experiment.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["sessions"], row["failed"], row["mean_score_points"]) == ("2", "1", "0.0")
    page = (experiment / "experiment.html").read_text()
    assert re.findall(r'"name":"strength",[^{}]*"y":\[(.*?)\]', page) == ["0.0"]
    strength = json.loads((experiment / "experiment.json").read_text())
    assert strength == {"iqm": pytest.approx(20.7 / (14.6 + 20.7))}, (
        "a score of 0, as a fraction of a human's"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "no record of a run"),
        ("{", "no record of a run"),
        ('{"arguments": {}, "seed": 1, "commit": null}', "arguments.game"),
        ('{"arguments": {"game": "pong"}, "seed": 1, "commit": "abc"}', "commit"),
    ],
)
def test_what_is_no_record_of_a_run_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "run_pong.json").write_text(text)
    with pytest.raises(UserError, match=f"run_pong.json.*{complaint}"):
        read_session(tmp_path)


def test_a_table_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    run = {"arguments": {"game": "pong"}, "seed": 1, "commit": None}
    (tmp_path / "run_pong.json").write_text(json.dumps(run))
    (tmp_path / "pong.csv").write_text("what,is,this\n1,2,3\n")
    with pytest.raises(UserError, match=r"pong\.csv"):
        read_session(tmp_path)
