"""First priorities of chunks: what the agent's own loss says, wherever the actor looked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from acting.player import VectorStep
from acting.writer import ExperienceWriter
from agents.base import Acting, Diverged, Problem, ReplayAgent
from agents.registry import agent_type
from args import read_args
from memory.chunks.chunk import ChunkShape, chunk_from_bytes
from memory.replay.priorities import FIRST_LEAF, PriorityRule

SHAPE = ChunkShape(chunk_length=4, history_length=1, multi_step=2, discount=0.9, reward_clip=1.0)
STEPS = 9  # of one episode that terminates
WORDS = "--hidden-size 8 --num-quantile-samples 5 --num-tau-samples 5 --atoms 5 --V-min -2 --V-max 2".split()


def _agent(name: str) -> ReplayAgent:
    kind, problem = agent_type(name), Problem((1, 3), "float32", 2, None, None)
    agent = kind(problem, read_args(WORDS).select(kind.config_type), torch.device("cpu"), 0, False)
    assert isinstance(agent, ReplayAgent)
    return agent


def _play(agent: ReplayAgent, looks: bool) -> list[VectorStep]:
    """One environment's episode, and the step after it that only restarts."""
    generator = np.random.default_rng(1)
    noise = agent.mean_acting_noise(1)
    steps = []
    for moment in range(STEPS + 1):
        frame = generator.normal(size=(1, 3)).astype(np.float32)
        acting: Acting | None = agent.act(frame[:, None], noise) if looks else None
        a_t = np.zeros(1, np.int64) if acting is None else acting.a_t
        last, active = moment == STEPS - 1, moment < STEPS
        rewards = np.array([float(last)])
        ended, going_on = np.array([last]), np.array([False])
        flags = ended, going_on, np.array([active])
        steps.append(VectorStep(frame, acting, a_t, rewards, *flags, next_frames=frame, infos={}))
    return steps


@pytest.mark.parametrize("name", ["iqn", "rainbow"])
def test_leaves_are_the_losses_of_the_estimates_up_to_the_terminal(name: str) -> None:
    """Also for the last n transitions, whose discount is 0: no agent may find their loss to be nothing."""
    agent, rule = _agent(name), PriorityRule(0.5)
    steps = _play(agent, looks=True)
    writer = ExperienceWriter(agent, 1, SHAPE, rule, {})
    packets = [packet for step in steps for packet in writer.add(step)]
    packets += writer.flush(steps[-1].frames)
    chosen = np.stack([step.acting.chosen[0] for step in steps if isinstance(step.acting, Acting)])
    chunks = [chunk_from_bytes(packet.data) for packet in packets]
    r_t, discount_t = np.concatenate([chunk.targets for chunk in chunks]).T
    greedy = chosen[np.minimum(np.arange(STEPS) + SHAPE.multi_step, STEPS)]
    losses = agent.initial_losses(chosen[:STEPS], r_t, discount_t, greedy)
    found = np.concatenate([packet.leaves[: packet.transitions] for packet in packets])
    assert (discount_t == 0).sum() == SHAPE.multi_step
    np.testing.assert_allclose(found, rule.leaves(losses), rtol=1e-5)
    assert found.min() > 10 * rule.leaves(np.zeros(1))[0]


@pytest.mark.parametrize("name", ["iqn", "rainbow"])
def test_an_actor_that_did_not_look_gives_the_running_maximum(name: str) -> None:
    agent = _agent(name)
    steps = _play(agent, looks=False)
    writer = ExperienceWriter(agent, 1, SHAPE, PriorityRule(0.5), {})
    packets = [packet for step in steps for packet in writer.add(step)]
    assert packets
    for packet in packets:
        np.testing.assert_array_equal(packet.leaves[: packet.transitions], FIRST_LEAF)


def _step(loss: float | None) -> VectorStep:
    """A step whose estimates have this loss; None: it was played at random."""
    estimate = None if loss is None else np.full((1, 1), loss, np.float32)
    acting = None if estimate is None else Acting(np.zeros(1, np.int64), estimate, estimate)
    frame, never = np.zeros((1, 3), np.float32), np.array([False])
    a_t, rewards, active = np.zeros(1, np.int64), np.zeros(1), np.array([True])
    return VectorStep(frame, acting, a_t, rewards, never, never, active, next_frames=frame, infos={})


def test_random_steps_have_the_largest_leaf_so_far_also_after_learning_began() -> None:
    """In the chunk in which the first losses appear, and in all later ones; smaller losses change nothing."""
    agent: Any = SimpleNamespace(initial_losses=lambda chosen, *_: chosen[:, 0])
    losses = [None] * 6 + [4.0, 9.0] + [0.25] * 4 + [None] * 4 + [16.0] * 4 + [None] * 4 + [0.25] * 2
    writer, leaves = ExperienceWriter(agent, 1, SHAPE, PriorityRule(0.5, 0.0), {}), list[float]()
    for number, loss in enumerate(losses):
        packets = writer.add(_step(loss))
        leaves += [float(leaf) for packet in packets for leaf in packet.leaves[: packet.transitions]]
        if number == 13:  # as if the actor had been stopped here
            kept = writer.state_dict()
            writer = ExperienceWriter(agent, 1, SHAPE, PriorityRule(0.5, 0.0), {})
            writer.load_state_dict(kept)
    assert leaves[:4] == [1.0] * 4  # no loss is known yet
    assert leaves[4:8] == [3.0, 3.0, 2.0, 3.0]
    # The last two of a chunk with losses lead to random steps, whose estimates are unknown.
    assert leaves[8:12] == [0.5, 0.5, 3.0, 3.0]
    assert leaves[12:16] == [3.0] * 4
    assert leaves[16:20] == [4.0] * 4
    assert leaves[20:] == [4.0] * 4


def test_all_new_transitions_have_the_largest_leaf_so_far_where_a_spec_says_so() -> None:
    """As in Schaul et al. 2016, algorithm 1, line 6, with the actor's first losses for all losses."""
    agent: Any = SimpleNamespace(initial_losses=lambda chosen, *_: chosen[:, 0])
    losses = [None] * 4 + [4.0, 9.0, 0.25, 0.25] + [0.25] * 4 + [16.0] + [0.25] * 5
    writer = ExperienceWriter(agent, 1, SHAPE, PriorityRule(0.5, 0.0, first_priorities="largest"), {})
    packets = [packet for loss in losses for packet in writer.add(_step(loss))]
    assert [packet.leaves.tolist() for packet in packets] == [[1.0] * 4, [3.0] * 4, [3.0] * 4, [4.0] * 4]


def test_a_first_loss_that_is_not_finite_ends_the_actor() -> None:
    """As the largest leaf so far it would be given to later transitions, which the replay would leave out."""
    agent: Any = SimpleNamespace(initial_losses=lambda chosen, *_: chosen[:, 0] * np.inf)
    writer = ExperienceWriter(agent, 1, SHAPE, PriorityRule(0.5), {})
    with pytest.raises(Diverged, match="not finite"):
        for _ in range(8):
            writer.add(_step(1.0))


def test_an_older_versions_unfinished_chunks_are_refused() -> None:
    writer = ExperienceWriter(_agent("iqn"), 1, SHAPE, PriorityRule(0.5), {})
    with pytest.raises(ValueError, match="an older version"):
        writer.load_state_dict({"builders": [], "largest": 1.0})
