"""Episodes that go on from rollout to rollout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from agents.on_policy.rollouts import OpenEpisodes
from memory.rollouts.rollout import Rollout

MakeRollout = Callable[..., Rollout]
PER_STEP = ("a_t", "log_prob", "rewards", "terminated", "truncated", "active")


def cut(rollout: Rollout, start: int, stop: int) -> Rollout:
    """Rows `start` to `stop` - 1, as an actor would have packed them."""
    history = len(rollout.frames) - len(rollout.active)
    columns = {name: getattr(rollout, name)[start:stop] for name in PER_STEP}
    frames, ages = rollout.frames[start : stop + history], rollout.ages[start : stop + 1]
    return rollout._replace(frames=frames, ages=ages, continues=np.full(4, start > 0), **columns)


def test_each_step_is_handed_out_once_when_its_episode_has_ended(make_rollout: MakeRollout) -> None:
    whole, parts = make_rollout(length=60, end=0.1), 6
    ends = whole.terminated | whole.truncated
    episodes, handed_out = OpenEpisodes(), np.zeros((60, 4), np.int64)
    for number in range(parts):
        stop = (number + 1) * 10
        part = cut(whole, stop - 10, stop)
        joined, rows = episodes.ended(part, part.active)
        start = stop - len(joined.active)
        expected = cut(whole, start, stop)
        for name in (*PER_STEP, "frames", "ages"):
            assert np.array_equal(getattr(joined, name), getattr(expected, name)), name
        handed_out[start:stop] += rows
        for b in range(4):
            last = np.flatnonzero(ends[:stop, b])
            due = whole.active[:stop, b] & (np.arange(stop) <= (last[-1] if len(last) else -1))
            assert np.array_equal(handed_out[:stop, b], due.astype(np.int64))
    assert handed_out.max() == 1 and handed_out.sum() > 100


def test_a_stream_that_breaks_off_loses_its_open_episode(make_rollout: MakeRollout) -> None:
    whole = make_rollout(length=20, end=0.0)  # nothing ends
    episodes, later = OpenEpisodes(), cut(whole, 10, 20)
    ends = np.zeros((10, 4), np.bool_)
    ends[-1] = True
    broken = later._replace(terminated=ends, continues=np.array([True, False, True, False]))
    first, none = episodes.ended(cut(whole, 0, 10), whole.active[:10])
    assert len(first.active) == 10 and not none.any()
    joined, rows = episodes.ended(broken, broken.active)
    assert rows.sum(0).tolist() == [20, 10, 20, 10] and len(joined.active) == 20
    assert len(episodes.ended(later, later.active)[0].active) == 10  # nothing was kept


def test_a_stream_that_breaks_off_begins_again_with_its_own_frames(make_rollout: MakeRollout) -> None:
    """Not with the last one that was seen before, as of an actor that was started again."""
    whole, other = (make_rollout(length=20, end=0.0, seed=seed) for seed in (0, 1))
    later, episodes = cut(whole, 10, 20), OpenEpisodes()
    later = later._replace(frames=later.frames.copy(), ages=later.ages.copy())
    later.frames[:, 1], later.ages[:, 1] = other.frames[:12, 1], other.ages[:11, 1]
    episodes.ended(cut(whole, 0, 10), whole.active[:10])
    joined, _ = episodes.ended(later._replace(continues=np.arange(4) != 1), later.active)
    assert len(joined.active) == 20
    assert np.array_equal(joined.frames[10:], later.frames) and np.array_equal(joined.ages[10:], later.ages)
    streams = [0, 2, 3]  # those that continue
    assert np.array_equal(joined.frames[:, streams], whole.frames[:, streams])
    assert np.array_equal(joined.ages[:, streams], whole.ages[:, streams])


def test_streams_that_come_and_go_leave_the_others_what_waited(make_rollout: MakeRollout) -> None:
    """As where one actor joins and another is late: stream 1 is gone, 7 is new, their order is another."""
    whole, episodes = make_rollout(length=20, end=0.0), OpenEpisodes()
    episodes.ended(cut(whole, 0, 10), whole.active[:10])
    later, order = cut(whole, 10, 20), [3, 1, 0, 2]
    columns = {name: getattr(later, name)[:, order] for name in (*PER_STEP, "frames", "ages")}
    ends = np.zeros((10, 4), np.bool_)
    ends[-1] = True
    streams = whole.stream[order]
    streams[1] = 7
    changed = later._replace(**{**columns, "terminated": ends}, stream=streams)
    joined, rows = episodes.ended(changed, changed.active)
    assert rows.sum(0).tolist() == [20, 10, 20, 20]
    assert np.array_equal(joined.frames[:, [0, 2, 3]], whole.frames[:, [3, 0, 2]])
    assert np.array_equal(joined.rewards[:, [0, 2, 3]], whole.rewards[:, [3, 0, 2]])


def test_other_streams_begin_anew(make_rollout: MakeRollout) -> None:
    whole, episodes = make_rollout(length=20, end=0.0), OpenEpisodes()
    episodes.ended(cut(whole, 0, 10), whole.active[:10])
    other = cut(whole, 10, 20)._replace(stream=np.array([4, 5, 6, 7]))
    assert len(episodes.ended(other, other.active)[0].active) == 10


def test_an_episode_without_an_end_is_told_of_once(
    make_rollout: MakeRollout, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agents.on_policy.rollouts.LONG_EPISODE", 15)
    whole, episodes = make_rollout(length=30, end=0.0), OpenEpisodes()
    told = []
    for start in (0, 10, 20):
        part = cut(whole, start, start + 10)
        episodes.ended(part, part.active)
        told.append(caplog.text.count("has not ended for 15 steps"))
    assert told == [0, 1, 1]
