"""The files of a run as its learner writes them, over a real server."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from learning.results import LearnerStatus, PatientDisk, Results
from learning.saved.figures import Figures, set_aside
from memory.runs.episodes import EpisodeReporter
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.scripts import Sender
from memory.server.connection import Client
from reporting.pages.run_page import GameFacts, RunFacts
from reporting.tables import EpisodeRecord, LearningPoint
from tests.memory.road import begin


def results(folder: Path, first_step: int = 100) -> Results:
    return Results(folder, ["pong"], "pong", first_step)


def figures(run: Results, folder: Path) -> Figures:
    return Figures(folder, "pong", run, RunFacts({"pong": GameFacts(4)}), 100)


def shown_scalars(folder: Path) -> dict[str, float]:
    """The newest value of every scalar."""
    events = EventAccumulator(str(folder / "tensorboard" / "pong")).Reload()
    return {tag: events.Scalars(tag)[-1].value for tag in events.Tags()["scalars"]}


def play(client: Client, keys: Keys, scores: list[tuple[float, bool]], rooms: int = 0) -> None:
    """An actor reports episodes of these scores, each of training or of evaluation.

    `rooms`: how many the first visits; the n-th visits n times as many.
    """
    with Lease(client, keys.actor_lease(0)).acquire("actor 0") as lease:
        reporter = EpisodeReporter(Sender(client, keys, 0, lease.token, begin(client, keys, 64).epoch))
        for number, (score, evaluation) in enumerate(scores, start=1):
            steps = 10 * number
            counts, seen = [[number, 9]], list(range(number * rooms))
            reporter.report(
                EpisodeRecord(0, number, 0, steps, 0, score, score, score, 10, evaluation, counts, seen)
            )


def test_rows_of_learning_are_written_when_due(tmp_path: Path) -> None:
    run = results(tmp_path)
    run.add_metrics(LearningPoint(101, 1, 1, {"loss": 1.0}))
    assert run.history.learning == []
    run.add_metrics(LearningPoint(102, 2, 2, {"loss": 3.0}), every_s=0.0)
    run.write_metrics()
    assert run.history.learning == [LearningPoint(102, 2, 2, {"loss": 2.0})]


def test_evaluation_and_training_have_means_of_their_own(client: Client, keys: Keys, tmp_path: Path) -> None:
    play(client, keys, [(1.0, False), (50.0, True), (3.0, False), (60.0, True)])
    for _ in range(2):  # the second time from the table on disk
        run = results(tmp_path)
        run.collect(client, keys)
        scores, evaluation = run.leading.summary(), run.evaluation.summary()
        assert scores is not None and evaluation is not None
        assert (scores.mean, scores.episodes, run.leading.last) == (2.0, 2, 3.0)
        assert (evaluation.mean, evaluation.episodes) == (55.0, 2)
        shown_by = figures(run, tmp_path)
        shown_by.scalars(104, {"clock/t_actors": 40.0})
        shown_by.plot()
        shown_by.close()
    shown = shown_scalars(tmp_path)
    assert (shown["score/mean"], shown["score/evaluation_mean"], shown["clock/t_actors"]) == (2.0, 55.0, 40.0)
    assert "Evaluation mean" in (tmp_path / "Reward_pong.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("evaluation", "mean"),
    [([False, False, True], 1.5), ([True, True, True], None)],
)
def test_the_mean_number_of_rooms_is_that_of_training(
    evaluation: list[bool], mean: float | None, client: Client, keys: Keys, tmp_path: Path
) -> None:
    """Of episodes of 1, 2 and 3 rooms; what is known of the run is from all of them."""
    play(client, keys, [(1.0, each) for each in evaluation], rooms=1)
    run = results(tmp_path)
    run.collect(client, keys)
    shown_by = figures(run, tmp_path)
    shown_by.scalars(104, {})
    shown_by.close()
    shown = shown_scalars(tmp_path)
    assert (shown["rooms/known"], shown.get("rooms/mean")) == (3.0, mean)


def test_speeds_are_of_the_time_since_the_last_look(tmp_path: Path) -> None:
    learner = SimpleNamespace(
        updates=10, t_learner=40, waited_s=3.0, metrics={"loss": 2.0}, source=SimpleNamespace()
    )
    learner.source.counters = SimpleNamespace(played=50)
    run = results(tmp_path)
    status = LearnerStatus(1000, cast(Any, learner), run, PatientDisk())
    status.record(status.published_at + 5)
    learner.updates, learner.t_learner, learner.waited_s = 30, 120, 4.0
    status.record(status.published_at + 10)
    assert status.scalars == {
        "speed/updates_per_second": pytest.approx(2.0),
        "speed/learner_steps_per_second": pytest.approx(8.0),
        "speed/learner_wait_share": pytest.approx(0.1),
    }
    run.write_metrics()
    (row,) = run.history.learning
    assert (row.learner_steps, row.actor_steps, row.updates) == (120, 50, 30)
    assert row.metrics == {"loss": 2.0, "updates_per_second": pytest.approx(2.0)}


def test_an_episode_of_another_game_is_left_out(client: Client, keys: Keys, tmp_path: Path) -> None:
    """Nobody of this run pushes one: it must not stop the run, now or at the next start."""
    with Lease(client, keys.actor_lease(0)).acquire("actor 0") as lease:
        reporter = EpisodeReporter(Sender(client, keys, 0, lease.token, begin(client, keys, 64).epoch))
        for number, game in enumerate(("elsewhere", "pong"), start=1):
            reporter.report(EpisodeRecord(0, number, 0, 10, 0, 1.0, 1.0, 1.0, 10, game=game))
    for _ in range(2):
        run = results(tmp_path)
        run.collect(client, keys)
        scores = run.leading.summary()
        assert scores is not None and scores.episodes == 1


def test_evaluation_leads_where_nothing_was_played_in_training(
    client: Client, keys: Keys, tmp_path: Path
) -> None:
    play(client, keys, [(50.0, True), (60.0, True)])
    run = results(tmp_path)
    assert (run.leading.summary(), run.leading.last, run.evaluation.summary()) == (None, None, None)
    run.collect(client, keys)
    assert run.leading is run.evaluation and run.leading.last == 60.0
    summary = run.leading.summary()
    assert summary is not None and (summary.mean, summary.episodes) == (55.0, 2)


def test_learning_goes_on_from_the_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "learning_pong.csv"
    for first_step, told in ((100, (104, 108)), (104, (105,))):
        run = results(tmp_path, first_step)
        for t in told:
            run.add_metrics(LearningPoint(t, t, t - 100, {"loss": 1.0}))
            figures(run, tmp_path).plot()
    assert [line.split(",")[0] for line in path.read_text().splitlines()[1:]] == ["104", "105"]


def test_an_earlier_run_is_set_aside_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table, learning = tmp_path / "pong.csv", tmp_path / "learning_pong.csv"
    results(tmp_path)
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
