"""The baselines do the same work: their batches and losses are ours."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.iqn import IqnAgent
from agents.parts.learning import batch_to_device
from benchmarks.harness import Road, record, setting_for
from benchmarks.original.agent import (
    OriginalActor,
    OriginalIqn,
    OriginalLearner,
    Randomness,
    transitions_of,
)
from benchmarks.original.networks import in_streams, noise_in_streams
from benchmarks.original.replay import OriginalReplay, Step, steps_of
from envs.config import EnvConfig
from envs.registry import make_env
from memory.replay.batch import Batch
from memory.server.connection import Client, RedisConfig, make_client
from models.noisy import draw_noise
from wiring.setting import Setting, build_agent

SPEC = "--spec specs/atari/rainbow_iqn_cpu.yaml --precision float32 --memory-capacity 1024 --learn-start 32"
CPU = torch.device("cpu")


def _setting(words: str = "") -> Setting:
    return setting_for(f"{SPEC} {words}")


@pytest.fixture(scope="module")
def play_of_one() -> list[Step]:
    """An environment's play, episodes' ends included."""
    return steps_of(record(_setting(), environments=1, steps=900))


def _assert_same(ours: Batch, naive: Batch) -> None:
    np.testing.assert_array_equal(ours.leaf, naive.leaf)
    np.testing.assert_array_equal(ours.s_tm1, naive.s_tm1)
    np.testing.assert_array_equal(ours.a_tm1, naive.a_tm1)
    np.testing.assert_allclose(ours.r_t, naive.r_t, rtol=1e-6)
    np.testing.assert_allclose(ours.discount_t, naive.discount_t, rtol=1e-6)
    alive = ours.discount_t > 0  # after a terminal ours shows the last frame and the baseline a blank one
    np.testing.assert_array_equal(ours.s_t[alive], naive.s_t[alive])
    np.testing.assert_allclose(ours.weights, naive.weights, rtol=1e-5)


def test_the_original_replay_draws_our_batches(
    client: Client, redis_socket: str, play_of_one: list[Step]
) -> None:
    """One environment's transitions lie in the same order in both; new priorities change both alike."""
    setting = _setting()
    naive = OriginalReplay(make_client(RedisConfig(redis_socket, 0)), setting)
    with closing(Road(setting, client, environments=1)) as road:
        pushed = road.push(record(setting, environments=1, steps=900))
        road.replay.ingest()
        assert pushed - 32 < road.replay.fill <= pushed == len(play_of_one)
        leaves = (np.arange(pushed) < road.replay.fill).astype(np.float32)  # unfinished chunks have none
        for start in range(0, pushed, 300):
            naive.append(play_of_one[start : start + 300], leaves[start : start + 300])
        losses, draws = np.random.default_rng(1), np.random.default_rng(2)
        road.replay.generator = np.random.default_rng(2)
        seen_ends = 0
        for _ in range(12):
            ours, theirs = road.replay.sample(32, 0.4), naive.sample(32, 0.4, draws)
            _assert_same(ours, theirs)
            seen_ends += int((ours.discount_t == 0).sum())
            new = losses.random(32)
            road.replay.update(ours.leaf, ours.chunk_id, new)
            naive.update(theirs.leaf, new)
        assert seen_ends > 0


def test_the_original_losses_are_ours(client: Client) -> None:
    """With the same weights, taus and noise, before and after an update of both."""
    setting = _setting()
    agent, naive = build_agent(setting.args, setting.problem, learning=True), OriginalLearner(setting)
    assert isinstance(agent, IqnAgent)
    _take_weights(naive.online, agent)
    naive.target.load_state_dict(naive.online.state_dict())
    with closing(Road(setting, client, environments=4)) as road:
        road.push(record(setting, environments=4, steps=64))
        road.replay.ingest()
        for _ in range(3):
            batch = road.replay.sample(32, 0.4)
            draws = draws_to_come(agent, 32)
            theirs = naive.update(batch_to_device(batch, CPU), draws)
            ours = agent.update(batch, 0).losses
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def _take_weights(naive: OriginalIqn, agent: IqnAgent) -> None:
    renamed = {
        name.replace("torso.layers", "convolutions"): value
        for name, value in in_streams(agent.acting_weights(), agent.config.hidden_size).items()
    }
    result = naive.load_state_dict(renamed, strict=False)
    assert not result.unexpected_keys and all("epsilon" in name for name in result.missing_keys)


def draws_to_come(agent: IqnAgent, rows: int) -> list[Randomness]:
    """What the agent's next update of so many transitions will draw, in the order in which it does."""
    generator = torch.Generator()
    generator.set_state(agent.state_dict()["generator"])  # type: ignore[arg-type]
    config = agent.config

    drawn = draw_noise(agent.online.noise_sizes, 3, generator, CPU)

    def taus(samples: int) -> Tensor:
        return torch.rand(rows, samples, generator=generator)

    taus_t, noise_t = taus(config.num_quantile_samples), noise_in_streams(drawn, 0)
    taus_prime, noise_prime = taus(config.num_tau_prime_samples), noise_in_streams(drawn, 1)
    taus_tm1, noise_tm1 = taus(config.num_tau_samples), noise_in_streams(drawn, 2)
    return [Randomness(taus_t, noise_t), Randomness(taus_prime, noise_prime), Randomness(taus_tm1, noise_tm1)]


def test_the_original_actor_plays_and_its_buffer_becomes_transitions() -> None:
    setting = _setting("--game pong")
    env = make_env(setting.args.select(EnvConfig), [3])
    actor = OriginalActor(OriginalLearner(setting), env, setting)
    steps = [actor.step() for _ in range(20)]
    env.close()
    assert [step.timestep for step in steps] == list(range(20))
    steps = [step._replace(reward=float(i), terminal=i == 9) for i, step in enumerate(steps)]
    batch = transitions_of(steps, history_length=4, multi_step=3, discount=0.5)
    assert len(batch.a_tm1) == 20 - 3 - 3
    for row, i in enumerate(range(3, 17)):
        np.testing.assert_array_equal(batch.s_tm1[row], _stack(steps, i))
        np.testing.assert_array_equal(batch.s_t[row], _stack(steps, i + 3))
        assert batch.discount_t[row] == (0.0 if 7 <= i <= 9 else 0.125)
        taken = [j for j in range(3) if not any(steps[k].terminal for k in range(i, i + j))]
        assert batch.r_t[row] == sum(0.5**j * (i + j) for j in taken)


def _stack(steps: list[Step], i: int) -> NDArray[np.uint8]:
    return np.stack([step.frame for step in steps[i - 3 : i + 1]])
