"""PPO with random network distillation (Burda et al. 2018, arXiv 1810.12894), one update behind with V-trace.

PPO: Schulman et al. 2017, arXiv 1707.06347. V-trace: Espeholt et al. 2018, arXiv 1802.01561.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Problem, Update
from agents.on_policy import Networks, OnPolicyAgent, OnPolicyConfig, Part
from agents.parts.distributions import Categorical
from agents.parts.episode_sums import EpisodeSums
from agents.parts.forward_filter import ForwardFilter
from agents.parts.means import Means
from agents.parts.policy_losses import action_chances, approximate_kl, clipped_surrogate, explained_variance
from agents.parts.rnd import Rnd
from agents.parts.rollouts import RolloutStates, episodic_steps, minibatches, unbroken_steps
from agents.parts.slices import slices
from agents.parts.vtrace import gae, vtrace
from memory.rollouts.rollout import Rollout
from models.policy import PolicyNetwork


@dataclass(frozen=True)
class PpoRndConfig(OnPolicyConfig):
    """Hyper-parameters of PPO with RND; `hidden_size` is that of the random networks' dense layers too."""

    batch_size: int  # transitions per optimiser step
    gae_lambda: float  # lambda of advantages and value targets
    epochs: int  # passes over a rollout
    ppo_clip: float  # the ratio to the policy at the update's beginning counts within 1 +- this
    ext_discount: float  # gamma of extrinsic, episodic returns, per agent step
    int_discount: float  # gamma of intrinsic returns, which no episode's end cuts
    ext_coeff: float  # weight of extrinsic advantages
    int_coeff: float  # weight of intrinsic advantages
    rnd_update_proportion: float  # share of a batch's transitions that the predictor learns from
    v_trace: bool  # off: plain PPO, whose old policy is the one that acted


class RndNetworks(Networks):
    """Policy and RND."""

    policy: PolicyNetwork

    def __init__(self, policy: PolicyNetwork, rnd: Rnd) -> None:
        super().__init__(policy)
        self.rnd = rnd


class _Lessons(NamedTuple):
    """What the epochs learn from, by flat index [T * B], on the device."""

    a_t: Tensor
    log_prob: Tensor  # of a_t under the old policy
    advantages: Tensor
    targets: Tensor  # [T * B, 2] of both value heads


class PpoRndAgent(OnPolicyAgent[PpoRndConfig, RndNetworks]):
    """Two value heads, two streams of advantages, one Adam for policy and predictor.

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
        return RndNetworks(PolicyNetwork(*self._policy_parts(problem)), rnd)

    def _parts(self) -> dict[str, Part]:
        return {**super()._parts(), "filter": self._filter, "episodes": self._episodes}

    @property
    def rnd(self) -> Rnd:
        """What tells how new a frame is."""
        return self.networks.rnd

    def intrinsic_rewards(self, frames: NDArray[Any]) -> NDArray[Any]:
        """[N] float32: how new frames [N, *frame] are, scaled as they are learned from."""
        rewards: NDArray[Any] = self.rnd.scaled(self.rnd.raw_rewards(frames)).cpu().numpy()
        return rewards

    def _warm_up(self, states: RolloutStates) -> None:
        self._observe(states)

    def _learn(self, rollout: Rollout, states: RolloutStates, transitions: Tensor) -> Update:
        rewards, raw = self._rewards(rollout, states, transitions)
        self._observe(states)
        lessons, told = self._lessons(rollout, states, rewards, transitions)
        losses, learned = self._epochs(states, lessons, transitions.flatten().nonzero().squeeze(1))
        told |= {"intrinsic_raw": raw, **self._told_of_episodes(rollout, rewards)}
        return Update(losses, {**learned, **told})

    def _told_of_episodes(self, rollout: Rollout, rewards: Tensor) -> dict[str, Tensor]:
        """The mean intrinsic return of the episodes that ended."""
        sums = self._episodes.run(rollout, rewards[:, :, 1].numpy())
        return {"episode_intrinsic_return": torch.tensor(sums).mean()} if sums else {}

    @torch.no_grad()
    def _observe(self, states: RolloutStates) -> None:
        """The frames that steps led to: each frame once over successive rollouts."""
        for rows in slices(states.indices[states.streams :]):
            self.rnd.observations.observe(states.newest(rows))

    @torch.no_grad()
    def _rewards(self, rollout: Rollout, states: RolloutStates, transitions: Tensor) -> tuple[Tensor, Tensor]:
        """[T, B, 2] clipped extrinsic rewards and scaled intrinsic ones; the mean of these before scaling.

        Intrinsic: the errors at the frames that transitions led to, over the spread of their discounted sums.
        """
        after = transitions.flatten().nonzero().squeeze(1).to(self.device) + states.streams
        errors = torch.cat([self.rnd.errors(states.newest(rows)) for rows in slices(after)]).cpu()
        raw = torch.zeros(transitions.shape).masked_scatter_(transitions, errors)
        sums = self._filter.run(raw.numpy(), transitions.numpy(), rollout.stream, rollout.continues)
        self.rnd.rewards.observe(torch.from_numpy(sums)[transitions].to(self.device))
        return torch.stack([self._clipped(rollout.rewards), self.rnd.scaled(raw)], dim=2), errors.mean()

    def _lessons(
        self, rollout: Rollout, states: RolloutStates, rewards: Tensor, transitions: Tensor
    ) -> tuple[_Lessons, dict[str, Tensor]]:
        """Advantages and targets by the present network, and what is to be told of them."""
        config, trace = self.config, self.config.gae_lambda
        log_pi, values = self._look_back(rollout, states)
        log_mu = torch.from_numpy(rollout.log_prob)
        ratios = torch.where(transitions, (log_pi - log_mu).exp(), 1.0)
        heads = (
            episodic_steps(rollout, rewards[..., 0], values[..., 0], config.ext_discount, trace),
            unbroken_steps(rollout, rewards[..., 1], values[..., 1], config.int_discount, trace),
        )
        advantages = [vtrace(steps, ratios) if config.v_trace else gae(steps) for steps in heads]
        targets = values[:-1] + torch.stack(advantages, dim=2)
        lessons = _Lessons(
            torch.from_numpy(rollout.a_t),
            log_pi if config.v_trace else log_mu,
            config.ext_coeff * advantages[0] + config.int_coeff * advantages[1],
            targets,
        )
        flat = _Lessons(*(part.flatten(0, 1).to(self.device) for part in lessons))
        rows = (part[transitions] for part in (ratios, rewards, values[:-1], targets))
        return flat, _told(*rows)

    def _epochs(
        self, states: RolloutStates, lessons: _Lessons, transitions: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The losses of all optimiser steps, and the means of what they were made of."""
        config, means, losses = self.config, Means(), []
        for batch in minibatches(transitions, config.batch_size, config.epochs, self._generator):
            kept = batch[torch.rand(len(batch), generator=self._generator) < config.rnd_update_proportion]
            parts = chain(
                self._policy_losses(states, lessons, batch.to(self.device), means),
                self._predictor_losses(states, kept.to(self.device), means),
            )  # made one by one: only one graph is in memory
            loss, grad_norm = self._step.take_sum(parts)
            losses.append(loss)
            means.add({"loss": loss, "grad_norm": grad_norm})
        return torch.stack(losses), means.take()

    def _policy_losses(
        self, states: RolloutStates, lessons: _Lessons, batch: Tensor, means: Means
    ) -> Iterator[Tensor]:
        """Slices of the mean loss of a batch's policy and values."""
        for rows in slices(batch):
            said = self._run(states.stacks(rows))
            chances = action_chances(said.policy, lessons.a_t[rows])
            log_ratio = chances.log_prob - lessons.log_prob[rows]
            policy = clipped_surrogate(log_ratio, lessons.advantages[rows], self.config.ppo_clip)
            value = (said.values - lessons.targets[rows]).square() / 2  # [M, 2]
            ratio_change = (log_ratio.detach().exp() - 1).abs()
            means.add(
                {
                    "policy_loss": policy,
                    "value_loss_extrinsic": value[:, 0],
                    "value_loss_intrinsic": value[:, 1],
                    "entropy": chances.entropy,
                    "approximate_kl": approximate_kl(log_ratio),
                    "clip_share": (ratio_change > self.config.ppo_clip).float(),
                }
            )
            yield (policy + value.sum(1) - self.config.entropy_coeff * chances.entropy).sum() / len(batch)

    def _predictor_losses(self, states: RolloutStates, kept: Tensor, means: Means) -> Iterator[Tensor]:
        """Slices of the predictor's mean loss at the frames that the transitions `kept` led to."""
        for rows in slices(kept):
            errors = self.rnd.errors(states.newest(rows + states.streams))
            means.add({"predictor_loss": errors})
            yield errors.sum() / len(kept)


def _told(ratios: Tensor, rewards: Tensor, values: Tensor, targets: Tensor) -> dict[str, Tensor]:
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
