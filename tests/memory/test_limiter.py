"""The limiter keeps the ratio and never blocks both sides."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from args import Args
from memory.runs.counters import Counters, Limiter
from wiring.sources import limiter_slack


@settings(max_examples=150, deadline=None)
@given(
    actors=st.integers(1, 5),
    envs=st.integers(1, 16),
    chunk_length=st.integers(1, 32),
    multi_step=st.integers(1, 10),
    replay_frequency=st.integers(1, 16),
    queue_size=st.integers(1, 10),
    learn_start=st.integers(1, 300),
    before=st.integers(0, 10_000),
    deaths=st.lists(st.integers(0, 400), max_size=4),
    seed=st.integers(0, 2**32),
)
def test_no_deadlock_and_the_ratio_holds(
    actors: int,
    envs: int,
    chunk_length: int,
    multi_step: int,
    replay_frequency: int,
    queue_size: int,
    learn_start: int,
    before: int,
    deaths: list[int],
    seed: int,
) -> None:
    """Actors of many environments push whole chunks only, one at a time dies with what it had not pushed."""
    choices = random.Random(seed)
    slack = limiter_slack(
        Args(
            weight_synchro_frequency=1,
            nb_actor=actors,
            envs_per_actor=envs,
            chunk_length=chunk_length,
            multi_step=multi_step,
            queue_size=queue_size,
            replay_frequency=replay_frequency,
        )
    )
    limiter = Limiter(True, replay_frequency, slack)
    pending = [[0] * envs for _ in range(actors)]  # steps in unfinished chunks
    steps, batches, turns = before, 0, 0
    starts_at = before + learn_start
    while steps < before + learn_start + 1500:
        counters = Counters(1, steps, batches, starts_at, 0, 0)
        may_act, may_learn = limiter.actor_may_step(counters), limiter.learner_may_update(counters, batches)
        assert may_act or may_learn, "both sides wait for each other"
        if may_act and (not may_learn or choices.random() < 0.7):
            actor = choices.randrange(actors)
            if turns in deaths:
                pending[actor] = [0] * envs
            turns += 1
            for env in range(envs):
                pending[actor][env] += 1
                if pending[actor][env] == chunk_length + multi_step:
                    pending[actor][env] -= chunk_length
                    steps += chunk_length
        else:
            batches += 1
        assert replay_frequency * batches <= max(steps - starts_at, 0)
        assert steps - starts_at - replay_frequency * batches <= slack + actors * envs * chunk_length


def test_actors_may_lead_by_two_intervals_between_weights() -> None:
    """However little may lie unpushed or queued."""
    assert limiter_slack(Args(weight_synchro_frequency=1_000_000)) == 2_000_000


def test_a_rolled_back_snapshot_or_an_emptied_server_blocks_nobody() -> None:
    """Only what happened since the epoch began to learn counts."""
    limiter = Limiter(True, 4, 100)
    assert limiter.learner_may_update(Counters(2, 1_000_004, 0, 1_000_000, 0, 0), 0)
    assert limiter.actor_may_step(Counters(2, 1_000_050, 0, 1_000_000, 0, 0))
    assert limiter.actor_may_step(Counters(2, 0, 0, 5_000, 0, 0))
    assert not limiter.actor_may_step(Counters(2, 1_000_101, 0, 1_000_000, 0, 0))


def test_unsynchronised_sides_never_wait_for_each_other() -> None:
    """But the learner still waits for learn-start."""
    limiter = Limiter(False, 4, 0)
    assert limiter.actor_may_step(Counters(1, 10**9, 0, 0, 0, 0))
    assert limiter.learner_may_update(Counters(1, 100, 10**6, 100, 0, 0), 10**6)
    assert not limiter.learner_may_update(Counters(1, 99, 0, 100, 0, 0), 0)


def test_what_is_owed_is_never_more_than_the_slack() -> None:
    """Nothing before learning starts, nothing where the learner keeps its own pace."""
    counters = Counters(1, 1_100, 10, 1_000, 0, 0)
    assert Limiter(True, 4, 100).owed_steps(counters, 10) == 60
    assert Limiter(True, 4, 50).owed_steps(counters, 10) == 50
    assert Limiter(True, 4, 100).owed_steps(Counters(1, 900, 0, 1_000, 0, 0), 0) == 0
    assert Limiter(False, 4, 100).owed_steps(counters, 10) == 0
