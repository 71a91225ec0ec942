"""The files of a run as its learner writes them, over a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from learning.results import Results, set_aside
from memory.runs.episodes import Episode, EpisodeReporter
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.server.connection import Client
from reporting.learning import LearningPoint
from tests.memory.road import begin


def results(folder: Path, first_step: int = 100) -> Results:
    return Results(folder, ["pong"], "pong", 4, None, first_step)


def play(client: Client, keys: Keys, scores: list[tuple[float, bool]]) -> None:
    """An actor reports episodes of these scores, each of training or of evaluation."""
    with Lease(client, keys.actor_lease(0)).acquire("actor 0") as lease:
        reporter = EpisodeReporter(client, keys, 0, lease.token, begin(client, keys, 64).epoch)
        for number, (score, evaluation) in enumerate(scores, start=1):
            steps = 10 * number
            counts = [[number, 9]]
            reporter.report(Episode(0, number, 0, steps, 0, score, score, score, 10, evaluation, counts))


def test_evaluation_and_training_have_means_of_their_own(client: Client, keys: Keys, tmp_path: Path) -> None:
    play(client, keys, [(1.0, False), (50.0, True), (3.0, False), (60.0, True)])
    for _ in range(2):  # the second time from the table on disk
        run = results(tmp_path)
        run.collect(client, keys)
        assert run.scores is not None and run.evaluation_scores is not None
        assert (run.scores.mean, run.scores.episodes, run.last_score) == (2.0, 2, 3.0)
        assert (run.evaluation_scores.mean, run.evaluation_scores.episodes) == (55.0, 2)
        run.scalars(104, {"clock/t_actors": 40.0})
        run.plot()
        run.close()
    events = EventAccumulator(str(tmp_path / "tensorboard" / "pong")).Reload()
    shown = {tag: events.Scalars(tag)[-1].value for tag in events.Tags()["scalars"]}
    assert (shown["score/mean"], shown["score/evaluation_mean"], shown["clock/t_actors"]) == (2.0, 55.0, 40.0)
    assert "Evaluation mean" in (tmp_path / "Reward_pong.html").read_text(encoding="utf-8")


def test_an_episode_of_another_game_is_left_out(client: Client, keys: Keys, tmp_path: Path) -> None:
    """Nobody of this run pushes one: it must not stop the run, now or at the next start."""
    with Lease(client, keys.actor_lease(0)).acquire("actor 0") as lease:
        reporter = EpisodeReporter(client, keys, 0, lease.token, begin(client, keys, 64).epoch)
        for number, game in enumerate(("elsewhere", "pong"), start=1):
            reporter.report(Episode(0, number, 0, 10, 0, 1.0, 1.0, 1.0, 10, game=game))
    for _ in range(2):
        run = results(tmp_path)
        run.collect(client, keys)
        assert run.scores is not None and run.scores.episodes == 1
        run.close()


def test_evaluation_leads_where_nothing_was_played_in_training(
    client: Client, keys: Keys, tmp_path: Path
) -> None:
    play(client, keys, [(50.0, True), (60.0, True)])
    run = results(tmp_path)
    assert (run.scores, run.last_score, run.evaluation_scores) == (None, None, None)
    run.collect(client, keys)
    assert run.scores == run.evaluation_scores
    assert run.last_score == 60.0


def test_learning_goes_on_from_the_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "learning_pong.csv"
    for first_step, told in ((100, (104, 108)), (104, (105,))):
        run = results(tmp_path, first_step)
        for t in told:
            run.learned(LearningPoint(t, t, t - 100, {"loss": 1.0}))
            run.plot()
        run.close()
    assert [line.split(",")[0] for line in path.read_text().splitlines()[1:]] == ["104", "105"]


def test_an_earlier_run_is_set_aside_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table, learning = tmp_path / "pong.csv", tmp_path / "learning_pong.csv"
    results(tmp_path).close()
    set_aside(table)
    assert table.exists() and learning.exists() and not caplog.messages
    for number in (1, 2):
        table.write_text("header\nrow\n")
        if number == 2:
            learning.write_text("header\nrow\n")
        set_aside(table)
        assert not table.exists()
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == [
        "learning_pong.earlier_2.csv",
        "pong.earlier_1.csv",
        "pong.earlier_2.csv",
    ]
    assert len(caplog.messages) == 3
