"""The base of agents with a policy network, value heads and rollouts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.base import ActingNoise, AgentError, Problem, RolloutActing, RolloutAgent, Update
from agents.learning import copied_to_cpu, load_weights, seeded, uses_bfloat16
from agents.parts.distributions import ActionDistribution, distribution_of
from agents.parts.rollouts import RolloutStates, SlicedStep, slices, transition_mask
from memory.rollouts.rollout import Rollout
from models.policy import PolicyValues
from models.torso import Torso, resolve_torso


@dataclass(frozen=True)
class OnPolicyConfig:
    """Hyper-parameters that all these agents share."""

    torso: str  # one of models.torso.TORSOS
    head_sizes: str  # units of the hidden layers above the torso, as "256,448"
    hidden_size: int  # units of the hidden layers of the mlp torso
    lr: float  # Adam's learning rate
    adam_eps: float  # Adam's epsilon
    max_grad_norm: float  # the gradient is clipped to this norm; 0: it is not
    precision: str  # of forward passes, one of agents.learning.PRECISIONS
    reward_clip: float  # rewards are clipped to +- this; 0: not clipped
    entropy_coeff: float  # weight of the entropy bonus, per nat


class Networks(nn.Module):
    """All networks of an agent, and all that travels with its weights."""

    def __init__(self, policy: nn.Module) -> None:
        """`policy`: observation [B, H, *frame] -> PolicyValues."""
        super().__init__()
        self.policy = policy


class FlatBatch(NamedTuple):
    """What is learned from a rollout, by flat index t * B + b, on the device."""

    a_t: Tensor  # [T * B] int64, or [T * B, A]
    log_prob: Tensor  # [T * B] of a_t under the old policy
    advantages: Tensor  # [T * B]
    targets: Tensor  # [T * B], or [T * B, V], of the values

    @classmethod
    def of(
        cls, a_t: Tensor, log_prob: Tensor, advantages: Tensor, targets: Tensor, device: torch.device
    ) -> FlatBatch:
        """From columns [T, B, ...] on the CPU."""
        assert a_t.shape[:2] == log_prob.shape == advantages.shape == targets.shape[:2]
        return cls(*(column.flatten(0, 1).to(device) for column in (a_t, log_prob, advantages, targets)))


class Stateful(Protocol):
    """A part of an agent that a snapshot holds."""

    def state_dict(self) -> Mapping[str, Any]:
        """All that is needed to continue."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> object:
        """Continue from `state_dict()`."""


def empty_update() -> Update:
    """The update of a rollout from which nothing is learned."""
    return Update(torch.zeros(0), {"loss": torch.zeros(()), "grad_norm": torch.zeros(())})


ConfigT = TypeVar("ConfigT", bound=OnPolicyConfig)
NetworksT = TypeVar("NetworksT", bound=Networks)


class OnPolicyAgent(RolloutAgent, Generic[ConfigT, NetworksT]):
    """Samples actions from its policy's distribution. An update is all learning from one rollout."""

    def __init__(
        self, problem: Problem, config: ConfigT, device: torch.device, seed: int, learning: bool
    ) -> None:
        self.config, self.device = config, device
        self._distribution = self._build_distribution(problem)
        self._bfloat16 = uses_bfloat16(config.precision, device)
        self._learning = learning
        weights_seed, noise_seed = (int(word) for word in np.random.SeedSequence(seed).generate_state(2))
        self._generator = torch.Generator().manual_seed(noise_seed)  # for learning
        self.networks: NetworksT = seeded(lambda: self._build(problem), weights_seed).to(device)
        self._updates = 0  # calls of `update`
        if learning:
            self._step = SlicedStep(self.networks, config.lr, config.adam_eps, config.max_grad_norm)

    @abstractmethod
    def _build(self, problem: Problem) -> NetworksT:
        """The agent's networks; the global generator, seeded for them, gives their initial weights."""

    @abstractmethod
    def _learn(self, rollout: Rollout, states: RolloutStates, transitions: Tensor) -> Update:
        """Learn from the rows of the mask `transitions` [T, B]; one of `losses` per optimiser step."""

    def _warm_up(self, states: RolloutStates) -> None:
        """Called instead of `_learn` with rollouts that were played at random throughout."""

    def _build_distribution(self, problem: Problem) -> ActionDistribution:
        """The distribution of actions; AgentError where the agent has none for this kind of them."""
        return distribution_of(problem, self.device)

    def _network_arguments(self, problem: Problem) -> tuple[Torso, list[int], int, int]:
        """Torso, widths of the hidden layers, parameters of the distribution, number of values."""
        config, shape = self.config, problem.observation_shape
        kind = resolve_torso(config.torso, shape, for_vectors="flat")  # the head is the network for vectors
        torso = Torso(kind, shape, problem.observation_dtype, config.hidden_size)
        head_sizes = [int(size) for size in config.head_sizes.split(",")]
        return torso, head_sizes, self._distribution.num_parameters, len(self.value_heads)

    @property
    def acting_noise_period(self) -> int:
        """1: every action is drawn independently."""
        return 1

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """The randomness of a draw from the policy."""
        return self._distribution.draw_noise(rows, generator)

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The noise of the most likely action."""
        return self._distribution.mean_noise(rows)

    @torch.inference_mode()
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> RolloutActing:
        """Actions drawn from the policy by the noise; values are those of `value_heads`."""
        policy, values = self._forward(torch.from_numpy(s_t).to(self.device))
        a_t = self._distribution.actions(policy, noise)
        log_prob = self._distribution.evaluate(policy, a_t).log_prob
        return RolloutActing(a_t.cpu().numpy(), log_prob.cpu().numpy(), values.cpu().numpy())

    def update(self, experience: Rollout, t_learner: int) -> Update:
        """Learn from a whole rollout; one that was played at random throughout has no losses."""
        self._require_learning()
        states = RolloutStates(experience, self.device)
        transitions = transition_mask(experience)
        self._updates += 1
        if not transitions.any():
            self._warm_up(states)
            return empty_update()
        lag = self._updates - 1 - float(experience.updates[experience.looked].mean())
        losses, metrics = self._learn(experience, states, transitions)
        return Update(losses, {**metrics, "policy_lag": torch.tensor(lag)})

    def _clipped(self, rewards: NDArray[np.float32]) -> Tensor:
        clip = self.config.reward_clip
        return torch.from_numpy(rewards.clip(-clip, clip) if clip else rewards)

    @torch.no_grad()
    def _evaluate(
        self, rollout: Rollout, states: RolloutStates, transitions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The rollout under the present network, on the CPU.

        Returns:
          log pi [T, B] of the actions; pi / mu [T, B], where mu is the behaviour policy, and 1 outside the
          mask `transitions`; values [T + 1, B, V].
        """
        a_t = torch.from_numpy(rollout.a_t)
        actions = torch.cat([a_t, torch.zeros_like(a_t[:1])]).flatten(0, 1).to(self.device)  # [(T + 1) * B]
        log_prob, values = [], []
        for rows in slices(states.indices):
            output = self._forward(states.stacks(rows))
            log_prob.append(self._distribution.evaluate(output.policy, actions[rows]).log_prob)
            values.append(output.values)
        log_pi = torch.cat(log_prob).cpu().view(-1, states.streams)[:-1]
        assert log_pi.shape == transitions.shape
        ratios = torch.where(transitions, (log_pi - torch.from_numpy(rollout.log_prob)).exp(), 1.0)
        return log_pi, ratios, torch.cat(values).cpu().view(-1, states.streams, len(self.value_heads))

    def _forward(self, observation: Tensor) -> PolicyValues:
        """A forward pass in the agent's precision; each has an autocast of its own."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bfloat16):
            output: PolicyValues = self.networks.policy(observation)
        return output

    def acting_weights(self) -> dict[str, Tensor]:
        """All networks, and the statistics that go with them."""
        weights: dict[str, Tensor] = copied_to_cpu(self.networks.state_dict())
        return weights

    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Load them, statistics included."""
        load_weights(self.networks, weights)

    def _parts(self) -> dict[str, Stateful]:
        """What a snapshot holds besides networks, generator and the number of updates."""
        return {"optimiser": self._step}

    def state_dict(self) -> dict[str, object]:
        """Networks with their statistics, Adam's moments, the learner's generator, updates so far."""
        self._require_learning()
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        own = {"networks": self.networks.state_dict(), "generator": self._generator.get_state()}
        state: dict[str, object] = copied_to_cpu({**own, **parts, "updates": self._updates})
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from there under the present hyper-parameters; AgentError if parts lack or differ."""
        self._require_learning()
        parts = self._parts()
        missing = {"networks", "generator", "updates", *parts} - state.keys()
        if missing:
            raise AgentError(f"This state of an agent lacks {', '.join(sorted(missing))}.")
        load_weights(self.networks, state["networks"])
        for name, part in parts.items():
            part.load_state_dict(state[name])
        self._generator.set_state(state["generator"])
        self._updates = int(state["updates"])

    def _require_learning(self) -> None:
        if not self._learning:
            raise AgentError("This agent was built for acting only: it cannot learn or resume learning.")
