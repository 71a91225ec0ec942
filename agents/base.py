"""The interface of every agent: acting, learning, weights for actors, state for snapshots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.names import NEEDS_DISCRETE
from memory.replay.batch import Batch
from memory.rollouts.rollout import Rollout

ActingNoise = dict[str, Tensor]
"""All randomness of acting, [rows, ...] each, held for `acting_noise_period` steps. Rows are independent."""


class Diverged(ValueError):
    """A loss, gradient, probability or value is no longer finite: nothing can be learned any more."""


class AgentError(ValueError):
    """An agent was asked for what it cannot be or do; the message is one sentence for the user."""


class OtherNetworkError(AgentError):
    """Weights have names or shapes other than the network's."""


@dataclass(frozen=True)
class Problem:
    """Facts of an environment that an agent needs."""

    observation_shape: tuple[int, ...]  # [H, *frame]
    observation_dtype: str  # "uint8" (divided by 255 inside the network) | "float32"
    num_actions: int | None  # discrete actions; None for continuous ones
    action_low: tuple[float, ...] | None  # bounds of continuous actions, else None
    action_high: tuple[float, ...] | None
    mirrored_action: tuple[float, ...] | None = None  # sign of each component in a mirror image, if any
    masked: bool = False  # whether frames end with which actions are legal (envs/legal.py)
    parts: tuple[tuple[int, ...], ...] = ()  # of vectors with pictures in them (models/parts.py)

    def discrete_actions(self) -> int:
        """The number of actions; AgentError where they are continuous."""
        if self.num_actions is None:
            raise AgentError(NEEDS_DISCRETE)
        return self.num_actions


class Acting(NamedTuple):
    """Actions of N environments, and estimates from which their initial priorities are computed."""

    a_t: NDArray[Any]  # [N] int64, or [N, A] float32
    chosen: NDArray[Any]  # [N, K] float32, the acting estimate of the chosen action
    greedy: NDArray[Any]  # [N, K] float32, that of the greedy action


class RolloutActing(NamedTuple):
    """Actions of N environments, and their log-probabilities under the behaviour policy."""

    a_t: NDArray[Any]  # [N] int64, or [N, A] float32
    log_prob: NDArray[Any]  # [N] float32


class TensorBatch(NamedTuple):
    """The first columns of a Batch, those that are learned from, as tensors on the device."""

    s_tm1: Tensor  # [B, H, *frame]
    a_tm1: Tensor  # [B] int64, or [B, A] float32
    r_t: Tensor  # [B]
    discount_t: Tensor  # [B]
    s_t: Tensor  # [B, H, *frame]
    weights: Tensor  # [B]


class Update(NamedTuple):
    """Results of one update, on the device until they are needed."""

    losses: Tensor  # float32: [B] for priorities (DQN, NAF: |TD error|); of a rollout one per optimiser step
    metrics: dict[str, Tensor]  # scalars: "loss", "grad_norm"; of replay agents "q", mean Q of a_tm1


class Share(NamedTuple):
    """Rows `rank`, `rank + ranks` … of every batch: those of one of several learners."""

    rank: int = 0
    ranks: int = 1


class Agent(ABC):
    """One algorithm. With learning=False (actors, evaluation) it has no optimiser and no target network."""

    config_type: ClassVar[type]  # the frozen dataclass of its hyper-parameters
    learns: bool = True  # False: its scores do not count as scores of the run
    eval_noise: bool = True  # default of --eval-noise: whether evaluation is with its noise too
    priority_exponent: ClassVar[float | None] = None  # default of --priority-exponent, where there is one
    acting_noise_period: int = 1  # vector steps for which an actor holds one draw of acting noise

    @abstractmethod
    def __init__(
        self, problem: Problem, config: Any, device: torch.device, seed: int, learning: bool
    ) -> None:
        """`seed` fixes initial weights and learning noise; AgentError where agent and problem do not fit."""

    @abstractmethod
    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Fresh noise for `rows` environments, from `generator` alone."""

    @abstractmethod
    def next_acting_noise(
        self, noise: ActingNoise, first: NDArray[np.bool_], generator: torch.Generator
    ) -> ActingNoise:
        """The noise that follows `noise` after a period; rows of `first` [N] begin an episode."""

    @abstractmethod
    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The noise under which the agent acts by its means."""

    @abstractmethod
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting | RolloutActing:
        """Actions for s_t [N, H, *frame]; the noise has N rows, or one row that all share."""

    def act_independently(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting | RolloutActing:
        """`act`, but not even a rounding of a row depends on the other rows.

        Evaluation needs it: scores must not depend on how many episodes are played at once. Agents whose
        network looks at a whole batch override it.
        """
        return self.act(s_t, noise)

    def estimates(self, s_t: Tensor) -> Tensor:
        """Quantiles [N, K, A] of the return at s_t [N, H, *frame], without noise; K = 1: the mean.

        AgentError of an agent that has no estimate of every action.
        """
        raise AgentError(
            f"{type(self).__name__} has no estimate of every action; one of your own gives it by `estimates`."
        )

    @abstractmethod
    def update(self, experience: Any, t_learner: int) -> Update:
        """Learn from a Batch of the replay, or from a Rollout."""

    @abstractmethod
    def acting_weights(self) -> dict[str, Tensor]:
        """Copies of what actors need: on the CPU, contiguous, without noise."""

    @abstractmethod
    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take over `acting_weights()` of another agent; AgentError for other names or shapes."""

    @abstractmethod
    def state_dict(self) -> dict[str, object]:
        """Copies of all that learning needs to resume exactly: CPU tensors and plain Python values."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`; AgentError for the state of another agent or shape."""


class ReplayAgent(Agent):
    """An agent that learns off-policy, from batches of a prioritised replay."""

    @abstractmethod
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """Actions for s_t [N, H, *frame] and estimates from which first priorities are computed."""

    @abstractmethod
    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """The losses behind first priorities, from acting estimates, without a further forward pass.

        The online network stands in for the target network, and the estimates carry the acting noise.

        Args:
            chosen_tm1: [M, K] estimate of the action taken at s_tm1.
            r_t: [M] n-step return without its bootstrap.
            discount_t: [M].
            greedy_t: [M, K] estimate of the greedy action at s_t.

        Returns:
            [M] float32.
        """

    @abstractmethod
    def update(self, experience: Batch, t_learner: int) -> Update:
        """One optimiser step on the mean of weights * losses; `t_learner` is its clock in agent steps."""


class RolloutAgent(Agent):
    """An agent that learns on-policy, from whole rollouts of several environments."""

    value_heads: ClassVar[tuple[str, ...]]  # what each of the V values estimates the return of

    @abstractmethod
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> RolloutActing:
        """Actions for s_t [N, H, *frame], and their log-probabilities."""

    @abstractmethod
    def update(self, experience: Rollout, t_learner: int) -> Update:
        """All epochs of PPO, or one optimiser step, over the rollout; `losses` are finite unless it diverged.

        Columns with `looked` False give no gradient; their frames may update statistics of what is observed.
        """


@runtime_checkable
class Curious(Protocol):
    """An agent with intrinsic rewards: how new to it what it sees is."""

    def intrinsic_rewards(self, frames: NDArray[Any]) -> NDArray[Any]:
        """[N] float32: how new frames [N, *frame] are, in the unit that it learns from."""
