"""GAE and V-trace against the papers' sums, written as loops over whole streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.on_policy.losses import Trajectories, gae, vtrace
from agents.on_policy.rollouts import episodic_steps, unbroken_steps
from memory.rollouts.rollout import Rollout

MakeRollout = Callable[..., Rollout]
GAMMA, LAMBDA = 0.97, 0.9
HEADS = {"episodic": episodic_steps, "unbroken": unbroken_steps}
both_heads = pytest.mark.parametrize("head", HEADS)


def pieces(rollout: Rollout, b: int, head: str) -> Iterator[list[int]]:
    """Rows of stream b whose errors belong together: an episode's, or all of them."""
    piece: list[int] = []
    for t in range(len(rollout.active)):
        if rollout.active[t, b]:
            piece.append(t)
        if head == "episodic" and (rollout.terminated[t, b] or rollout.truncated[t, b]):
            yield piece
            piece = []
    yield piece


def value_after(rollout: Rollout, values: NDArray[np.float64], t: int, b: int, head: str) -> float:
    """gamma's partner in delta_t: the value of what follows the step of row t."""
    if head == "episodic":
        return 0.0 if rollout.terminated[t, b] else float(values[t + 1, b])
    later = [row for row in range(t + 1, len(rollout.active)) if rollout.active[row, b]]
    return float(values[later[0] if later else -1, b])


def oracle(
    rollout: Rollout, values: NDArray[np.float64], ratios: NDArray[np.float64], head: str
) -> NDArray[np.float64]:
    """v_s - V(x_s) = sum_{t >= s} gamma^{t-s} (prod_{s <= i < t} c_i) delta_t, NaN in rows without a step."""
    found = np.full(rollout.active.shape, np.nan)
    for b in range(rollout.active.shape[1]):
        for piece in pieces(rollout, b, head):
            for first, s in enumerate(piece):
                total = 0.0
                for last in range(first, len(piece)):
                    t = piece[last]
                    error = rollout.rewards[t, b] - values[t, b]
                    error += GAMMA * value_after(rollout, values, t, b, head)
                    product = 1.0
                    for i in piece[first:last]:
                        product *= LAMBDA * min(1.0, ratios[i, b])
                    total += GAMMA ** (last - first) * product * min(1.0, ratios[t, b]) * error
                found[s, b] = total
    return found


def steps_of(rollout: Rollout, values: NDArray[np.float64], head: str) -> Trajectories:
    rewards = torch.from_numpy(rollout.rewards).double()
    return HEADS[head](rollout, rewards, torch.from_numpy(values), GAMMA, LAMBDA)


def drawn(rollout: Rollout, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values [T + 1, B], and ratios [T, B] on both sides of 1 that are 1 where there is no step."""
    rng = np.random.default_rng(seed)
    length, streams = rollout.active.shape
    values = rng.normal(size=(length + 1, streams))
    return values, np.where(rollout.active, np.exp(rng.normal(size=(length, streams))), 1.0)


@both_heads
@pytest.mark.parametrize("seed", range(3))
def test_vtrace_is_the_papers_sum(head: str, seed: int, make_rollout: MakeRollout) -> None:
    rollout = make_rollout(length=16, streams=6, seed=seed)
    assert rollout.terminated.any() and rollout.truncated.any() and not rollout.active.all()
    values, ratios = drawn(rollout, seed)
    found = vtrace(steps_of(rollout, values, head), torch.from_numpy(ratios)).numpy()
    expected = oracle(rollout, values, ratios, head)
    np.testing.assert_allclose(found[rollout.active], expected[rollout.active], rtol=1e-6, atol=1e-9)


@both_heads
def test_gae_is_the_papers_sum_and_vtrace_on_policy(head: str, make_rollout: MakeRollout) -> None:
    rollout = make_rollout(length=16, streams=6)
    values, _ = drawn(rollout, 0)
    steps, ones = steps_of(rollout, values, head), np.ones(rollout.active.shape)
    expected = oracle(rollout, values, ones, head)
    found = gae(steps)
    np.testing.assert_allclose(found.numpy()[rollout.active], expected[rollout.active], rtol=1e-6)
    assert torch.equal(found, vtrace(steps, torch.from_numpy(ones)))


def test_it_is_rho_times_the_advantage(make_rollout: MakeRollout) -> None:
    """rho_s (r_s + gamma V_{s+1} - V_s + gamma lambda (v_{s+1} - V_{s+1})), within an episode."""
    rollout = make_rollout(length=9, end=0.0)
    values, ratios = drawn(rollout, 1)
    apart = vtrace(steps_of(rollout, values, "episodic"), torch.from_numpy(ratios)).numpy()
    later = np.concatenate([apart[1:], np.zeros((1, 4))])
    advantage = rollout.rewards + GAMMA * values[1:] - values[:-1] + GAMMA * LAMBDA * later
    np.testing.assert_allclose(apart, np.minimum(1, ratios) * advantage, rtol=1e-6)


@both_heads
def test_what_follows_the_last_step_is_bootstrapped_from(head: str, make_rollout: MakeRollout) -> None:
    rollout = make_rollout(length=5, streams=3, end=0.0)
    values, _ = drawn(rollout, 0)
    raised = values.copy()
    raised[-1] += 1.0
    ones = torch.ones(5, 3)
    change = vtrace(steps_of(rollout, raised, head), ones) - vtrace(steps_of(rollout, values, head), ones)
    expected = torch.tensor([GAMMA * (GAMMA * LAMBDA) ** k for k in (4, 3, 2, 1, 0)])
    torch.testing.assert_close(change, expected.double().unsqueeze(1).expand(5, 3))


def one_stream(make_rollout: MakeRollout, **marks: list[int]) -> Rollout:
    """Five rows of one stream; `marks` names the rows of masks that are set."""
    masks: dict[str, Any] = {name: np.isin(np.arange(5), rows)[:, None] for name, rows in marks.items()}
    return make_rollout(length=5, streams=1, end=0.0)._replace(**masks)


def test_a_termination_cuts_the_episodic_head_and_not_the_other(make_rollout: MakeRollout) -> None:
    rollout = one_stream(make_rollout, terminated=[1], active=[0, 1, 3, 4])
    values, _ = drawn(rollout, 0)
    other = values.copy()
    other[2:] = drawn(rollout, 1)[0][2:]  # everything from the episode's last frame on
    episodic, unbroken = (
        gae(steps_of(rollout, other, head)) - gae(steps_of(rollout, values, head)) for head in HEADS
    )
    assert (episodic[:2] == 0).all() and (episodic[3:] != 0).all()
    assert (unbroken[[0, 1, 3, 4]] != 0).all()


def test_a_truncation_bootstraps_from_the_true_last_frame_alone(make_rollout: MakeRollout) -> None:
    rollout = one_stream(make_rollout, truncated=[1], active=[0, 1, 3, 4])
    values, _ = drawn(rollout, 0)
    other = values.copy()
    other[3:] += 1.0  # the next episode
    found = gae(steps_of(rollout, values, "episodic"))
    assert torch.equal(found[:2], gae(steps_of(rollout, other, "episodic"))[:2])
    assert float(found[1, 0]) == pytest.approx(
        rollout.rewards[1, 0] + GAMMA * values[2, 0] - values[1, 0], rel=1e-6
    )


def test_the_unbroken_head_bootstraps_into_the_next_episodes_first_frame(make_rollout: MakeRollout) -> None:
    rollout = one_stream(make_rollout, terminated=[1], active=[0, 1, 3, 4])
    values, _ = drawn(rollout, 0)
    found = gae(steps_of(rollout, values, "unbroken"))
    delta = rollout.rewards[1, 0] + GAMMA * values[3, 0] - values[1, 0]
    assert float(found[1, 0]) == pytest.approx(delta + GAMMA * LAMBDA * float(found[3, 0]), rel=1e-6)
