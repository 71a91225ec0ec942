"""PPO with random network distillation (Burda et al. 2018, arXiv 1810.12894), one update behind with V-trace.

PPO: Schulman et al. 2017, arXiv 1707.06347. V-trace: Espeholt et al. 2018, arXiv 1802.01561. Both together,
with PPO's ratio to the policy that acted: Petrenko et al. 2020 (Sample Factory), arXiv 2006.11751.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Problem, Update
from agents.on_policy.agent import FlatBatch, Networks, OnPolicyAgent, OnPolicyConfig
from agents.on_policy.losses import (
    Means,
    clipped_surrogate,
    explained_variance,
    gae,
    ratio_metrics,
    vtrace,
)
from agents.on_policy.rollouts import (
    EpisodeSums,
    ForwardFilter,
    RolloutStates,
    episodic_steps,
    flat_indices,
    minibatches,
    unbroken_steps,
)
from agents.parts.devices import slices
from agents.parts.distributions import Categorical
from agents.parts.rnd import Rnd
from agents.parts.weights import Part
from memory.rollouts.rollout import Rollout
from models.policy import PolicyNetwork


@dataclass(frozen=True)
class PpoRndConfig(OnPolicyConfig):
    """Hyper-parameters of PPO with RND; `hidden_size` is that of the random networks' dense layers too."""

    batch_size: int  # transitions per optimiser step
    gae_lambda: float  # lambda of advantages and value targets
    epochs: int  # how often each rollout is learned from
    ppo_clip: float  # the ratio to the policy that acted counts within 1 +- this
    ext_discount: float  # gamma of extrinsic, episodic returns, per agent step
    int_discount: float  # gamma of intrinsic returns, which continue over the ends of episodes
    ext_coeff: float  # weight of extrinsic advantages
    int_coeff: float  # weight of intrinsic advantages
    rnd_update_proportion: float  # share of a batch's transitions that the predictor learns from
    v_trace: bool  # off: advantages are those of a rollout that the present policy played


class RndNetworks(Networks):
    """Policy and RND."""

    policy: PolicyNetwork

    def __init__(self, policy: PolicyNetwork, rnd: Rnd) -> None:
        super().__init__(policy)
        self.rnd = rnd


class PpoRndAgent(OnPolicyAgent[PpoRndConfig, RndNetworks]):
    """Two value heads, two advantages, one Adam for policy and predictor.

    Random play to warm up only feeds the statistics of observations.
    """

    config_type = PpoRndConfig
    value_heads = ("extrinsic", "intrinsic")

    def __init__(
        self, problem: Problem, config: PpoRndConfig, device: torch.device, seed: int, learning: bool
    ) -> None:
        super().__init__(problem, config, device, seed, learning)
        self._filter, self._episodes = ForwardFilter(config.int_discount), EpisodeSums()

    def _build_distribution(self, problem: Problem) -> Categorical:
        return Categorical(problem.discrete_actions(), self.device)

    def _build(self, problem: Problem) -> RndNetworks:
        config, frame_shape = self.config, problem.observation_shape[1:]
        rnd = Rnd(frame_shape, config.torso, config.hidden_size, self._bfloat16)
        return RndNetworks(PolicyNetwork(*self._network_arguments(problem)), rnd)

    def _parts(self) -> dict[str, Part]:
        return {**super()._parts(), "filter": self._filter, "episodes": self._episodes}

    @property
    def rnd(self) -> Rnd:
        """Its predictor's errors are the intrinsic rewards."""
        return self.online.rnd

    def intrinsic_rewards(self, frames: NDArray[Any]) -> NDArray[Any]:
        """[N] float32: how new frames [N, *frame] are, scaled as in learning."""
        rewards: NDArray[Any] = self.rnd.scaled(self.rnd.raw_rewards(frames)).cpu().numpy()
        return rewards

    def _warm_up(self, states: RolloutStates) -> None:
        self._observe(states)

    def _learn(self, rollout: Rollout, states: RolloutStates, transitions: Tensor) -> Update:
        extrinsic = self._clipped(rollout.rewards)
        raw = self._raw_rewards(states, transitions)
        intrinsic = self._scaled(rollout, raw, transitions)
        self._observe(states)
        batch, metrics = self._batch(rollout, states, extrinsic, intrinsic, transitions)
        losses, means = self._epochs(states, batch, flat_indices(transitions))
        metrics["intrinsic_raw"] = raw[transitions].mean()
        if sums := self._episodes.update(rollout, intrinsic.numpy()):
            metrics["episode_intrinsic_return"] = torch.tensor(sums).mean()
        return Update(losses, {**means, **metrics})

    @torch.no_grad()
    def _observe(self, states: RolloutStates) -> None:
        """The frames after each step: each frame once over successive rollouts."""
        for rows in slices(states.indices[states.streams :]):
            self.rnd.observations.observe(states.newest(rows))

    @torch.no_grad()
    def _raw_rewards(self, states: RolloutStates, transitions: Tensor) -> Tensor:
        """[T, B]: the predictor's errors at the frames after transitions; 0 elsewhere."""
        after = flat_indices(transitions).to(self.device) + states.streams
        errors = torch.cat([self.rnd.errors(states.newest(rows)) for rows in slices(after)]).cpu()
        return torch.zeros(transitions.shape).masked_scatter_(transitions, errors)

    def _scaled(self, rollout: Rollout, raw: Tensor, transitions: Tensor) -> Tensor:
        """[T, B]: raw rewards over the standard deviation of their discounted sums so far."""
        sums = torch.from_numpy(self._filter.update(rollout, raw.numpy(), transitions.numpy()))
        self.rnd.rewards.observe(sums[transitions].to(self.device))
        return self.rnd.scaled(raw)

    def _batch(
        self,
        rollout: Rollout,
        states: RolloutStates,
        extrinsic: Tensor,
        intrinsic: Tensor,
        transitions: Tensor,
    ) -> tuple[FlatBatch, dict[str, Tensor]]:
        """Advantages and targets by the present network from rewards [T, B], and their metrics."""
        config, trace = self.config, self.config.gae_lambda
        ratios, values = self._evaluate(rollout, states, transitions)
        heads = (
            episodic_steps(rollout, extrinsic, values[..., 0], config.ext_discount, trace),
            unbroken_steps(rollout, intrinsic, values[..., 1], config.int_discount, trace),
        )
        ext_advantages, int_advantages = (
            vtrace(steps, ratios) if config.v_trace else gae(steps) for steps in heads
        )
        targets = values[:-1] + torch.stack([ext_advantages, int_advantages], dim=2)  # [T, B, 2]
        advantages = config.ext_coeff * ext_advantages + config.int_coeff * int_advantages
        batch = FlatBatch.of(rollout, advantages, targets, self.device)
        rewards = torch.stack([extrinsic, intrinsic], dim=2)
        return batch, _metrics(*(each[transitions] for each in (ratios, rewards, values[:-1], targets)))

    def _epochs(
        self, states: RolloutStates, batch: FlatBatch, rows: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The losses of all optimiser steps, and the means of their metrics; `rows` [N]: flat indices."""
        config, means, losses = self.config, Means(), []
        for minibatch in minibatches(rows, config.batch_size, config.epochs, self._generator):
            draws = torch.rand(len(minibatch), generator=self._generator)
            kept = minibatch[draws < config.rnd_update_proportion]
            parts = chain(
                self._losses(states, batch, minibatch.to(self.device), means),
                self._predictor_losses(states, kept.to(self.device), means),
            )  # lazily, so that only one graph is in memory
            loss, grad_norm = self._step.take_sum(parts)
            losses.append(loss)
            means.add({"loss": loss, "grad_norm": grad_norm})
        return torch.stack(losses), means.take()

    def _losses(
        self, states: RolloutStates, batch: FlatBatch, rows: Tensor, means: Means
    ) -> Iterator[Tensor]:
        """Slices of the mean loss of policy and values over `rows`."""
        for part in slices(rows):
            output = self._forward(states.stacks(part))
            log_prob, entropy = self._distribution.evaluate(output.policy, batch.a_t[part])
            log_ratio = log_prob - batch.log_prob[part]
            policy_loss = clipped_surrogate(log_ratio, batch.advantages[part], self.config.ppo_clip)
            value_losses = (output.values - batch.targets[part]).square() / 2
            assert value_losses.shape == (*policy_loss.shape, 2)
            means.add(
                {
                    "policy_loss": policy_loss,
                    "value_loss_extrinsic": value_losses[:, 0],
                    "value_loss_intrinsic": value_losses[:, 1],
                    "entropy": entropy,
                    **ratio_metrics(log_ratio, self.config.ppo_clip),
                }
            )
            loss = policy_loss + value_losses.sum(1) - self._entropy_coeff * entropy
            yield loss.sum() / len(rows)

    def _predictor_losses(self, states: RolloutStates, rows: Tensor, means: Means) -> Iterator[Tensor]:
        """Slices of the predictor's mean loss at the frames after the transitions `rows`."""
        for part in slices(rows):
            errors = self.rnd.errors(states.newest(part + states.streams))
            means.add({"predictor_loss": errors})
            yield errors.sum() / len(rows)


def _metrics(ratios: Tensor, rewards: Tensor, values: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """Metrics of a rollout's transitions: ratios [M]; rewards, values, targets [M, 2]."""
    rho = ratios.clamp(max=1.0)
    return {
        "extrinsic_reward": rewards[:, 0].mean(),
        "intrinsic_reward": rewards[:, 1].mean(),
        "value_extrinsic": values[:, 0].mean(),
        "value_intrinsic": values[:, 1].mean(),
        "explained_variance_extrinsic": explained_variance(values[:, 0], targets[:, 0]),
        "explained_variance_intrinsic": explained_variance(values[:, 1], targets[:, 1]),
        "rho_mean": rho.mean(),
        "rho_min": rho.min(),
        "rho_clipped": (ratios > 1).float().mean(),
    }
