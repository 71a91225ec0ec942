from dataclasses import replace

import numpy as np
import pytest

from acting.episodes import ActionCounter, EpisodeTracker, FinishedEpisode
from envs.config import EnvDescription


def test_minutes_in_agent_steps() -> None:
    pong = EnvDescription((84, 84), "uint8", 18, None, None, 4, 60.0, 4)
    assert pong.steps_in(5) == 4_500
    assert pong.steps_in(30) == 27_000
    assert replace(pong, frames_per_step=1).steps_in(5) == 18_000
    assert replace(pong, frames_per_second=None).steps_in(5) is None


@pytest.mark.parametrize("caps", [(3, 7), (None, None)])
def test_scores_equal_slow_sums_over_random_episodes(caps: tuple[int | None, int | None]) -> None:
    rng = np.random.default_rng(0)
    tracker = EpisodeTracker(4, *caps, ActionCounter(4, 3, None, None))
    running: list[list[float]] = [[] for _ in range(4)]
    actions: list[list[int]] = [[] for _ in range(4)]
    restarting = np.zeros(4, np.bool_)
    count = 0
    for _ in range(300):
        rewards, active = rng.integers(-5, 6, size=4).astype(np.float64), ~restarting
        rewards[restarting] = 0.0
        a_t = rng.integers(3, size=4)
        terminated, truncated = rng.random(4) < 0.08, rng.random(4) < 0.05
        expected = []
        for row in np.flatnonzero(active).tolist():
            running[row].append(rewards[row])
            actions[row].append(int(a_t[row]))
            if terminated[row] or truncated[row]:
                score_5min, score_30min, score = (sum(running[row][:cap]) for cap in (*caps, None))
                counts = [[actions[row].count(action) for action in range(3)]]
                scores = (score_5min, score_30min, score)
                expected.append(FinishedEpisode(row, *scores, len(running[row]), counts, []))
                running[row], actions[row] = [], []
        assert tracker.step(a_t, rewards, terminated, truncated, active, {}) == expected
        count += len(expected)
        restarting = active & (terminated | truncated)
    assert count > 50


def test_last_step_within_the_cap_counts_and_the_next_does_not() -> None:
    tracker = EpisodeTracker(1, 2, 3, ActionCounter(1, 2, None, None))
    a_t, one, yes, no = np.array([1]), np.ones(1), np.array([True]), np.array([False])
    for _ in range(3):
        assert tracker.step(a_t, one, no, no, yes, {}) == []
    assert tracker.step(a_t, one, no, yes, yes, {}) == [FinishedEpisode(0, 2.0, 3.0, 4.0, 4, [[0, 4]], [])]


def test_rooms_are_those_that_the_steps_of_the_episode_led_to() -> None:
    tracker = EpisodeTracker(2, None, None, ActionCounter(2, 2, None, None))
    no, ends = np.array([False, False]), np.array([False, True])
    played = []
    steps = [([1, 1], no, no), ([2, 7], ends, no), ([1, 1], no, ends), ([1, 4], ~no, no)]
    for rooms, terminated, restarting in steps:
        a_t, rewards = np.zeros(2, np.int64), np.zeros(2)
        resumed = EpisodeTracker(2, None, None, ActionCounter(2, 2, None, None))
        resumed.load_state_dict(tracker.state_dict())
        tracker = resumed
        played += tracker.step(a_t, rewards, terminated, no, ~restarting, {"room": np.array(rooms)})
    assert [(episode.environment, episode.rooms) for episode in played] == [
        (1, [1, 7]),
        (0, [1, 2]),
        (1, [4]),
    ]


def test_rows_that_are_equally_far_are_told_once() -> None:
    tracker = EpisodeTracker(3, None, None, ActionCounter(3, 2, None, None))
    yes, no, ended = np.ones(3, np.bool_), np.zeros(3, np.bool_), np.array([False, False, True])
    tracker.step(np.zeros(3, np.int64), np.zeros(3), ended, no, yes, {})
    assert tracker.where() == "after step 1 of episode 1 or after step 0 of episode 2"


def test_a_component_of_one_value_alone_has_one_bin() -> None:
    """Random play knows such: Box([1, 0], [1, 1])."""
    counter = ActionCounter(1, None, (1.0, 0.0), (1.0, 1.0))
    for second in (0.0, 0.49, 1.0):
        counter.add(np.array([[1.0, second]], np.float32), np.array([True]))
    fixed, free = counter.take(0)
    assert fixed == [3, *[0] * 19] and [place for place, count in enumerate(free) if count] == [0, 9, 19]
