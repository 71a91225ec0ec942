import numpy as np
import pytest

from reporting.scores import ScoreWindow


def test_nothing_is_said_before_the_first_episode() -> None:
    assert ScoreWindow().summary() is None
    assert ScoreWindow().count == 0
    assert ScoreWindow().last is None


def test_one_episode_is_not_filled_up_with_zeros() -> None:
    window = ScoreWindow()
    window.add(-21.0, 800)
    assert window.summary() == (-21.0, 0.0, -21.0, -21.0, 800.0, 800, 1)


def test_only_the_last_episodes_count() -> None:
    rng = np.random.default_rng(0)
    scores, lengths = rng.normal(size=250), rng.integers(1, 1000, size=250)
    window = ScoreWindow(size=100)
    for score, length in zip(scores.tolist(), lengths.tolist(), strict=True):
        window.add(score, length)
    summary = window.summary()
    assert summary is not None
    last, last_lengths = scores[-100:], lengths[-100:]
    assert summary.episodes == window.count == 100
    assert summary[:4] == pytest.approx((last.mean(), last.std(), last.min(), last.max()))
    assert summary.mean_length == pytest.approx(last_lengths.mean())
    assert summary.longest_episode == last_lengths.max()
    assert window.last == scores[-1]
