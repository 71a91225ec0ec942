import numpy as np
import pytest

from reporting.history import RewardPoint, reward_points
from reporting.pages.run_figures import reward_figure
from reporting.tables import EpisodeRecord

TRAINING = [
    RewardPoint(1000, 800, 5.0, 2.0, 1.0, 9.0, 50.0, 70, 10),
    RewardPoint(2000, 1600, 6.0, 1.0, 4.0, 8.0, 40.0, 60, 10),
]


def history(episodes: int) -> list[EpisodeRecord]:
    scores = np.random.default_rng(0).integers(0, 500, size=episodes).tolist()
    return [
        EpisodeRecord(0, number, 0, 700 * number, 500 * number, score, score, score, 700)
        for number, score in enumerate(scores, start=1)
    ]


def test_points_end_with_the_last_episode_and_are_few() -> None:
    records = history(3000)
    points = reward_points(records, limit=50)
    assert len(points) <= 51
    scores = [each.score_saber for each in records[-100:]]
    assert points[-1].actor_steps == records[-1].actor_steps
    assert points[-1].learner_steps == records[-1].learner_steps
    assert points[-1].mean == pytest.approx(np.mean(scores))
    assert (points[-1].minimum, points[-1].maximum, points[-1].episodes) == (min(scores), max(scores), 100)
    assert np.all(np.diff([point.actor_steps for point in points]) > 0)


def test_a_shorter_window_is_made_of_fewer_episodes() -> None:
    assert reward_points(history(50), window=20)[-1].episodes == 20


def test_a_short_history_has_a_point_per_episode() -> None:
    points = reward_points(history(7))
    assert [point.episodes for point in points] == [1, 2, 3, 4, 5, 6, 7]
    assert reward_points([]) == []


def test_episodes_of_several_actors_are_put_in_order() -> None:
    assert reward_points(history(20)[::-1]) == reward_points(history(20))


def test_figure_shows_mean_band_extremes_and_both_axes() -> None:
    figure = reward_figure(TRAINING, [], frames_per_step=4)
    drawn = {trace.name or "lower": list(trace.y) for trace in figure.data}
    assert drawn == {"lower": [3, 5], "± 1 std": [7, 7], "max": [9, 8], "min": [1, 4], "mean": [5, 6]}
    steps, frames = figure.layout.updatemenus[0].buttons
    assert steps.args[0] == {"x": [[1000.0, 2000.0]] * 5}
    assert frames.args[0] == {"x": [[4000.0, 8000.0]] * 5}
    (mean,) = [trace for trace in figure.data if trace.name == "mean"]
    assert mean.customdata[0].tolist() == [2.0, 1.0, 9.0, 50.0, 70.0, 1000.0, 4000.0, 800.0, 10.0]


def test_evaluation_has_a_mean_and_a_band_of_its_own() -> None:
    evaluation = [RewardPoint(1500, 1200, 8.0, 0.5, 7.0, 9.0, 45.0, 60, 3)]
    figure = reward_figure(TRAINING, evaluation, frames_per_step=4)
    assert {trace.name for trace in figure.data[5:]} == {None, "evaluation mean", "evaluation ± 1 std"}
    assert [list(trace.y) for trace in figure.data[5:]] == [[7.5], [8.5], [8.0]]
    frames = figure.layout.updatemenus[0].buttons[1].args[0]["x"]
    assert frames == [[4000.0, 8000.0]] * 5 + [[6000.0]] * 3
    assert len(reward_figure([], evaluation, frames_per_step=4).data) == 3


def test_no_switch_where_a_step_is_a_frame() -> None:
    assert not reward_figure(reward_points(history(5)), [], frames_per_step=1).layout.updatemenus
