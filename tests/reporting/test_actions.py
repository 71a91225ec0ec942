import numpy as np
import pytest

from reporting.history import ActionCounts, ActionShares
from reporting.pages.run_figures import action_figure
from reporting.tables import EpisodeRecord


def action_shares(records: list[EpisodeRecord], parts: int = 120) -> ActionShares | None:
    counts = ActionCounts(parts)
    for each in records:
        counts.add(each)
    return counts.shares()


def record(steps: int, counts: list[list[int]]) -> EpisodeRecord:
    return EpisodeRecord(0, steps, 0, steps, 0, 1.0, 1.0, 1.0, 10, False, counts)


def test_shares_sum_to_one_and_every_episode_counts_once() -> None:
    rng = np.random.default_rng(0)
    steps = np.sort(rng.integers(0, 5000, size=300))
    counts = rng.integers(0, 9, size=(300, 2, 5))
    actions = action_shares(
        [record(int(t), each.tolist()) for t, each in zip(steps, counts, strict=True)], 40
    )
    assert actions is not None
    assert (actions.edges[0], actions.edges[-1]) == (0, steps[-1])
    assert len(actions.edges) <= 41
    for component, shares in enumerate(actions.shares):
        assert shares.sum(1) == pytest.approx(np.ones(len(actions.edges) - 1))
        for low, high, share in zip(actions.edges, actions.edges[1:], shares, strict=False):
            inside = counts[(np.maximum(steps, 1) > low) & (np.maximum(steps, 1) <= high), component].sum(0)
            assert share == pytest.approx(inside / inside.sum())


def test_an_episode_that_comes_late_counts_with_the_one_before() -> None:
    shares = action_shares([record(t, [[t, 1]]) for t in (100, 200, 150, 300)])
    assert shares is not None
    assert shares.edges.tolist() == [0, 100, 200, 300]
    assert shares.shares[0][1].tolist() == [350 / 352, 2 / 352]


def test_only_episodes_that_counted_the_same_actions() -> None:
    assert action_shares([]) is None
    assert action_shares([record(5, [])]) is None
    actions = action_shares([record(5, []), record(6, [[1, 1, 1]]), record(7, [[2, 6]])])
    assert actions is not None
    assert actions.shares[0].tolist() == [[0.25, 0.75]]


def test_a_heat_map_per_component_between_its_bounds() -> None:
    actions = action_shares([record(50, [[1, 3], [4, 0]]), record(90, [[2, 2], [1, 3]])])
    turn, move = action_figure(actions, [(-1.0, 1.0), (0.0, 10.0)]).data
    assert turn.x.tolist() == [0, 50, 90]
    assert turn.y.tolist() == [-1, 0, 1]
    assert turn.z.tolist() == [[0.25, 0.5], [0.75, 0.5]]
    assert move.y.tolist() == [0, 5, 10]
    assert move.z.tolist() == [[1, 0.25], [0, 0.75]]


def test_discrete_actions_lie_around_their_numbers() -> None:
    (drawn,) = action_figure(action_shares([record(50, [[1, 0, 3]])]), None).data
    assert drawn.y.tolist() == [-0.5, 0.5, 1.5, 2.5]
    assert drawn.z.tolist() == [[0.25], [0], [0.75]]
