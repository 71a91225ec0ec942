import numpy as np
import pytest

from reporting.measures.scores import GameScores
from reporting.tables import EpisodeRecord


def episode(number: int, score: float, length: int) -> EpisodeRecord:
    return EpisodeRecord(0, number, 0, number, 0, score, score, score, length)


def test_nothing_is_said_before_the_first_episode() -> None:
    assert GameScores(["pong"]).summary() is None
    assert GameScores(["pong"]).by_game() == {}
    assert GameScores(["pong"]).last is None


def test_one_episode_is_not_filled_up_with_zeros() -> None:
    scores = GameScores(["pong"])
    scores.add(episode(1, -21.0, 800))
    assert scores.summary() == (-21.0, 0.0, -21.0, -21.0, 800.0, 800, 1)


def test_only_the_last_episodes_count() -> None:
    rng = np.random.default_rng(0)
    scores, lengths = rng.normal(size=250), rng.integers(1, 1000, size=250)
    window = GameScores(["pong"], size=100)
    for number, (score, length) in enumerate(zip(scores.tolist(), lengths.tolist(), strict=True)):
        window.add(episode(number, score, length))
    summary = window.summary()
    assert summary is not None
    last, last_lengths = scores[-100:], lengths[-100:]
    assert summary.episodes == 100
    assert summary[:4] == pytest.approx((last.mean(), last.std(), last.min(), last.max()))
    assert summary.mean_length == pytest.approx(last_lengths.mean())
    assert summary.longest_episode == last_lengths.max()
    assert window.last == scores[-1]
