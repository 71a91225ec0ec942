"""Scores of one game, and of several: what the best model is judged by."""

from __future__ import annotations

import pytest

from lab.session import joined_means
from reporting.measures.fitness import normalised, standard_of
from reporting.measures.scores import GameScores
from reporting.tables import EpisodeRecord


def episode(number: int, score: float, game: str, length: int = 5) -> EpisodeRecord:
    return EpisodeRecord(0, number, 0, 10 * number, 0, score, score, score, length, game=game)


def test_one_game_is_its_window() -> None:
    scores = GameScores(["pong"], size=2)
    assert scores.summary() is None and scores.last is None
    for number, score in enumerate((1.0, 2.0, 4.0)):
        scores.add(
            episode(number, score, "" if number == 1 else "pong")
        )  # an earlier version told of no game
    summary = scores.summary()
    assert summary is not None
    assert (summary.mean, summary.episodes) == (3.0, 2) and scores.last == 4.0


def test_other_games_are_joined_as_fractions_of_their_standards() -> None:
    scores = GameScores(["CartPole-v1", "probe:catch"])
    scores.add(episode(1, 475.0, "CartPole-v1"))
    scores.add(episode(2, -0.58, "probe:catch"))
    summary = scores.summary()
    assert summary is not None and summary.mean == pytest.approx(0.5)


def test_several_atari_games_are_joined_as_fractions_of_human_play() -> None:
    scores = GameScores(["pong", "breakout"])
    scores.add(episode(1, 14.0, "pong"))
    assert scores.summary() is None  # the mean of some games is no mean of all
    for number, score in enumerate((10.0, 20.0)):
        scores.add(episode(number, score, "breakout"))
    summary = scores.summary()
    assert summary is not None and summary.episodes == 1
    pong, breakout = normalised("pong", 14.0).human, normalised("breakout", 15.0).human
    assert pong is not None and breakout is not None
    assert summary.mean == pytest.approx((pong + breakout) / 2)
    assert {game: known.mean for game, known in scores.by_game().items()} == {"pong": 14.0, "breakout": 15.0}


def test_every_number_of_a_joined_summary() -> None:
    """Of pong's 14 and breakout's 10 and 20; lengths and counts are those of the episodes."""
    scores = GameScores(["pong", "breakout"])
    played = (episode(1, 14.0, "pong", 9), episode(2, 10.0, "breakout", 4), episode(3, 20.0, "breakout", 6))
    for each in played:
        scores.add(each)
    pong, breakout = standard_of("pong"), standard_of("breakout")
    assert pong is not None and breakout is not None
    low, high = breakout.strength(10.0), pong.strength(14.0)
    mean, std = (high + breakout.strength(15.0)) / 2, 5 / breakout.range / 2
    assert scores.summary() == pytest.approx((mean, std, low, high, 7.0, 9, 1))


def test_the_joined_mean_begins_where_every_game_has_an_episode() -> None:
    played = [episode(1, 14.0, "pong"), episode(2, 15.0, "breakout"), episode(3, 15.0, "breakout")]
    means = joined_means(["pong", "breakout"], played)
    pong, breakout = normalised("pong", 14.0).human, normalised("breakout", 15.0).human
    assert pong is not None and breakout is not None
    assert means == {20: pytest.approx((pong + breakout) / 2), 30: pytest.approx((pong + breakout) / 2)}


def test_games_without_a_standard_are_joined_as_they_are() -> None:
    scores = GameScores(["pong", "probe:lock:4"])
    scores.add(episode(1, 3.0, "pong"))
    scores.add(episode(2, 1.0, "probe:lock:4"))
    summary = scores.summary()
    assert summary is not None and summary.mean == 2.0
    with pytest.raises(ValueError, match="An episode of boxing in a run of pong, probe:lock:4"):
        scores.add(episode(3, 1.0, "boxing"))
