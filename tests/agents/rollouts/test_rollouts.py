"""States cut from frames, minibatches, and the sums by which intrinsic rewards are scaled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from agents.on_policy.rollouts import ForwardFilter, RolloutStates, minibatches, transition_mask
from memory.rollouts.rollout import Rollout
from tests.memory.random_rollouts import random_rollout

MakeRollout = Callable[..., Rollout]
CPU = torch.device("cpu")


@pytest.mark.parametrize("history", [1, 2, 4])
def test_states_are_the_last_frames_of_their_episode(history: int, make_rollout: MakeRollout) -> None:
    rollout = make_rollout(history=history)
    states = RolloutStates(rollout, CPU)
    stacks = states.stacks(states.indices).numpy()
    assert stacks.dtype == np.uint8 and stacks.shape == (13 * 4, history, 10, 5)
    for t in range(13):
        for b in range(4):
            state = np.zeros((history, 10, 5), np.uint8)
            for back in range(min(rollout.ages[t, b] + 1, history)):
                state[history - 1 - back] = rollout.frames[history - 1 + t - back, b]
            assert np.array_equal(stacks[t * 4 + b], state)
    assert np.array_equal(states.newest(states.indices).numpy(), stacks[:, -1])


def test_vectors_keep_their_type(make_rollout: MakeRollout) -> None:
    rollout = make_rollout()
    vectors = rollout.frames.reshape(14, 4, 50).astype(np.float32)
    states = RolloutStates(rollout._replace(frames=vectors), CPU)
    stacks = RolloutStates(rollout, CPU).stacks(states.indices).flatten(2).float()
    assert torch.equal(states.stacks(states.indices), stacks)


def test_restarts_and_random_play_are_no_transitions(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(looked=np.array([True, False, True, True]))
    transitions = transition_mask(rollout)
    assert not transitions[:, 1].any()
    assert np.array_equal(transitions[:, 2], rollout.active[:, 2]) and not rollout.active[:, 2].all()


def test_every_epoch_has_each_row_once_in_another_order() -> None:
    rows, generator = torch.arange(10, 27), torch.Generator().manual_seed(0)
    parts = list(minibatches(rows, batch_size=5, epochs=2, generator=generator))
    assert [len(part) for part in parts] == [6, 6, 5] * 2
    epochs = [torch.cat(parts[:3]), torch.cat(parts[3:])]
    assert all(torch.equal(epoch.sort().values, rows) for epoch in epochs)
    assert not torch.equal(*epochs)
    assert [len(part) for part in minibatches(rows, 1000, 1, generator)] == [17]


def _of_streams(stream: list[int], continues: list[bool]) -> Rollout:
    return random_rollout(0)._replace(stream=np.array(stream), continues=np.array(continues))


def test_sums_run_on_over_rollouts_and_restart_where_a_stream_breaks() -> None:
    """Against a loop per stream; stream 5 changes its column, 6 breaks, 7 is new."""
    rng = np.random.default_rng(0)
    sums, discount = ForwardFilter(0.9), 0.9
    rewards, active = rng.random((2, 6, 2)).astype(np.float32), rng.random((2, 6, 3)) < 0.7
    first = sums.update(_of_streams([5, 6], [False, False]), rewards[0], active[0, :, :2])
    second_rewards = rng.random((6, 3)).astype(np.float32)
    second = sums.update(_of_streams([6, 7, 5], [False, True, True]), second_rewards, active[1])

    def loop(begin: float, rewards: np.ndarray, active: np.ndarray) -> list[float]:
        found, total = [], begin
        for reward, is_active in zip(rewards, active, strict=True):
            total = discount * total + reward if is_active else total
            found.append(total)
        return found

    for b in range(2):
        np.testing.assert_allclose(first[:, b], loop(0.0, rewards[0, :, b], active[0, :, b]))
    for b, begin in enumerate((0.0, 0.0, first[-1, 0])):
        np.testing.assert_allclose(second[:, b], loop(begin, second_rewards[:, b], active[1, :, b]))


def test_a_filter_goes_on_from_its_state() -> None:
    rewards, active = np.ones((3, 2), np.float32), np.ones((3, 2), np.bool_)
    going, resumed = ForwardFilter(0.9), ForwardFilter(0.9)
    going.update(_of_streams([4, 9], [False, False]), rewards, active)
    resumed.load_state_dict(going.state_dict())
    on = _of_streams([4, 9], [True, True])
    assert np.array_equal(going.update(on, rewards, active), resumed.update(on, rewards, active))
