import numpy as np

from acting.episodes import BINS, ActionCounter


def test_components_are_counted_apart_between_their_bounds() -> None:
    counter = ActionCounter(1, None, (-1.0, 0.0), (1.0, 10.0))
    for turn, move in ((-1.0, 0.0), (-0.95, 9.9), (0.0, 10.0), (1.0, 5.0)):
        counter.add(np.array([[turn, move]], np.float32), np.array([True]))
    turns, moves = np.array(counter.take(0))
    assert np.flatnonzero(turns).tolist() == [0, 10, 19]
    assert turns[[0, 10, 19]].tolist() == [2, 1, 1]
    assert np.flatnonzero(moves).tolist() == [0, 10, 19]
    assert moves[[0, 10, 19]].tolist() == [1, 1, 2]


def test_bins_are_those_of_a_histogram() -> None:
    actions = np.random.default_rng(0).uniform(-2, 3, (500, 2)).astype(np.float32)
    counter = ActionCounter(2, None, (-2.0, -2.0), (3.0, 3.0))
    for pair in actions[:, None]:
        counter.add(np.repeat(pair, 2, axis=0), np.array([False, True]))
    expected = [np.histogram(actions[:, part], BINS, (-2, 3))[0].tolist() for part in range(2)]
    assert counter.take(1) == expected
    assert counter.take(0) == [[0] * BINS] * 2


def test_an_episode_begins_at_zero() -> None:
    counter = ActionCounter(2, 4, None, None)
    counter.add(np.array([3, 1]), np.array([True, True]))
    assert counter.take(0) == [[0, 0, 0, 1]]
    counter.add(np.array([0, 1]), np.array([True, True]))
    assert counter.take(0) == [[1, 0, 0, 0]]
    assert counter.take(1) == [[0, 2, 0, 0]]
