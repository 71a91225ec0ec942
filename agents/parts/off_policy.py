"""Agents with one network, a target network and a prioritised replay."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from agents.base import Acting, ActingNoise, AgentError, Problem, ReplayAgent, Share, TensorBatch, Update
from agents.losses import Bootstrap, DoubleBootstrap
from agents.parts.devices import ForwardPasses, recorded
from agents.parts.exploration import EpsilonBesideNoise, NoisyEpsilonConfig, add_epsilon
from agents.parts.learning import GradientStep, LearningAgent, LearningConfig, PeriodicTarget, batch_to_device
from agents.parts.legal import LegalActions
from agents.parts.resets import HeadResets, ResetConfig
from agents.parts.weights import ACTING_ONLY, NetworkT, Part, Target
from memory.replay.batch import Batch
from models.dueling import DuelingNetwork
from models.layers import DuelingConfig
from models.noisy import Noise, draw_noise, zero_noise


@dataclass(frozen=True)
class OffPolicyConfig(LearningConfig):
    """Hyper-parameters that all these agents share."""

    compile: str  # a learner's forward passes, one of agents.parts.devices.COMPILE


ConfigT = TypeVar("ConfigT", bound=OffPolicyConfig)
OutputT = TypeVar("OutputT")  # of a forward pass


class OffPolicyAgent(LearningAgent[ConfigT, NetworkT], ReplayAgent, Generic[ConfigT, NetworkT, OutputT]):
    """Owns the online network, the target network, the optimiser and the learner's random generator."""

    share = Share()  # what it learns from of each batch: all, unless it is one of several learners
    _losses_are_pure = False  # for CUDA graphs; each class declares it anew: a subclass's losses may differ

    def __init__(
        self, problem: Problem, config: ConfigT, device: torch.device, seed: int, learning: bool
    ) -> None:
        super().__init__(problem, config, device, seed, learning)
        self.forward_passes = ForwardPasses(config.compile if learning else "none", device)
        self._gradients: Callable[..., tuple[Tensor, dict[str, Tensor]]] = self._derive
        if learning:
            self.target = self._build_target()
            self._gradient_step = self._build_gradient_step()
            networks, is_pure = (self.online, self.target.network), vars(type(self)).get("_losses_are_pure")
            self._gradients = recorded(self._derive, bool(is_pure), config.compile, device, *networks)

    @abstractmethod
    def _build_target(self) -> Target[NetworkT]:
        """The target network, which follows the online one."""

    @abstractmethod
    def _losses(self, batch: TensorBatch, *draws: Any, **_: Any) -> tuple[Tensor, Tensor]:
        """[B] losses with gradient, and [B] expected returns of the actions taken; `draws`: of `_draws`."""

    def _draws(self, rows: int) -> Sequence[Noise]:
        """The random draws that the losses of `rows` transitions need: none unless overridden."""
        return ()

    def _build_gradient_step(self) -> GradientStep:
        return GradientStep(self.online, self.config.lr, self.config.adam_eps, self.config.max_grad_norm)

    def join_learners(self, share: Share, average: Callable[[list[nn.Parameter]], None]) -> None:
        """Learn from `share` of each batch, by gradients that `average` makes the mean of all learners'."""
        self.share, self._gradient_step.average = share, average

    def _priority_losses(self, losses: Tensor) -> Tensor:
        """Losses [B] in the form in which they become priorities; unchanged unless overridden."""
        return losses

    def update(self, experience: Batch, t_learner: int) -> Update:
        """One step of Adam, then the target network follows; AgentError without learning=True."""
        if not self._learning:
            raise AgentError(ACTING_ONLY)
        if (lr_end := self.config.lr_end) is not None:
            self._gradient_step.anneal(self.config.lr, lr_end, t_learner / self.config.t_max)
        batch = batch_to_device(experience, self.device)
        losses, metrics = self._gradients(batch, *self._draws(len(batch.r_t)))
        grad_norm = self._gradient_step.descend()
        self.target.follow(t_learner)
        return Update(self._priority_losses(losses), {**metrics, "grad_norm": grad_norm})

    def _derive(self, batch: TensorBatch, *draws: Noise) -> tuple[Tensor, dict[str, Tensor]]:
        """[B] losses and metrics, without gradient: that of their mean is left in the parameters."""
        losses, q = self._losses(batch, *draws)
        assert losses.shape == q.shape == batch.weights.shape
        loss = (batch.weights * losses).mean()  # importance weights (Schaul et al. 2016, section 3.4)
        self._gradient_step.derive(loss)
        return losses.detach(), {"loss": loss.detach(), "q": q.detach().mean()}

    def _forward(self, network: NetworkT, *inputs: Any) -> OutputT:
        """A forward pass in the agent's precision; the result is float32.

        Autocast caches no weights that it casts: a pass with gradient must not get those of one without.
        """
        run = self.forward_passes if self.forward_passes.compiles else None
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bfloat16, cache_enabled=False):
            output: OutputT = run(network, *inputs) if run else network(*inputs)
        if self._legal is not None:
            output = self._allowed(output, self._legal, inputs[0])
        return output

    def _allowed(self, output: Any, legal: LegalActions, observation: Tensor) -> Any:
        """`output`, [B, ..., A] unless overridden, in which no forbidden action is ever the best."""
        return legal.only(output, observation)

    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take them over; a learner's target network too starts from them."""
        super().load_acting_weights(weights)
        if self._learning:
            self.target.copy()

    def _parts(self) -> dict[str, Part]:
        return {
            "online": self.online,
            "target": self.target,
            "optimiser": self._gradient_step.adam,
            "generator": self._generator,
        }


@dataclass(frozen=True)
class NoisyConfig(OffPolicyConfig, NoisyEpsilonConfig, ResetConfig):
    """Hyper-parameters that IQN and Rainbow share. Steps are agent steps of the learner's clock."""

    noisy_std: float  # sigma_0 of the noisy layers
    target_update: int  # steps between copies of the online network to the target network
    replay_frequency: int  # steps per update, and vector steps that noise is held (see NoisyAgent)


NoisyConfigT = TypeVar("NoisyConfigT", bound=NoisyConfig)
DuelingT = TypeVar("DuelingT", bound=DuelingNetwork)


class NoisyAgent(OffPolicyAgent[NoisyConfigT, DuelingT, Tensor]):
    """Explores by the noise of its layers (Fortunato et al. 2018, arXiv 1706.10295): IQN and Rainbow.

    Actors draw noise anew every `replay_frequency` vector steps, and at each with `noisy_epsilon_steps`.
    """

    target: PeriodicTarget[DuelingT]

    def __init__(
        self, problem: Problem, config: NoisyConfigT, device: torch.device, seed: int, learning: bool
    ) -> None:
        super().__init__(problem, config, device, seed, learning)
        self._bootstrap: Bootstrap = DoubleBootstrap()
        self._epsilon: EpsilonBesideNoise | None = None
        self.acting_noise_period = config.replay_frequency
        if config.noisy_epsilon_steps:
            self._epsilon = EpsilonBesideNoise(config, self.online, problem, device)
            self.acting_noise_period = 1  # whether to explore is drawn at each step, with all noise
            self.eval_noise = False  # most actions of an early snapshot would be random
        self._resets: HeadResets | None = None
        if config.reset_every and learning:
            self._resets = HeadResets(config, self.online, self._gradient_step.adam, self._generator)

    @abstractmethod
    def _build_network(self, config: DuelingConfig) -> DuelingT:
        """The agent's network."""

    def _build(self, problem: Problem) -> DuelingT:
        config, num_actions = self.config, problem.discrete_actions()
        observations = problem.observation_shape, problem.observation_dtype
        network = self._build_network(
            DuelingConfig(*observations, num_actions, config.hidden_size, config.torso, config.noisy_std)
        )
        if config.noisy_epsilon_steps:
            add_epsilon(network)
        return network

    def _build_target(self) -> PeriodicTarget[DuelingT]:
        return PeriodicTarget(self.online, self.config.target_update)

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Noise of every noisy layer, and what explores beside it."""
        noise = draw_noise(self.online.noise_sizes, rows, generator, self.device)
        return noise if self._epsilon is None else {**noise, **self._epsilon.draw(rows, generator)}

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """Zeros, so that every noisy layer stays at its mean."""
        noise = zero_noise(self.online.noise_sizes, rows, self.device)
        return noise if self._epsilon is None else {**noise, **self._epsilon.mean(rows)}

    def _acting(self, s_t: Tensor, estimates: Tensor, q: Tensor, noise: ActingNoise) -> Acting:
        """Greedy actions by q [N, A] but where the noise explores; `estimates`: [N, A, K]."""
        greedy_a_t = q.argmax(1)
        a_t = greedy_a_t if self._epsilon is None else self._epsilon.actions(greedy_a_t, noise, s_t)
        chosen, greedy = self._bootstrap.acting(estimates, q, a_t)
        return Acting(a_t.cpu().numpy(), chosen.cpu().numpy(), greedy.cpu().numpy())

    def update(self, experience: Batch, t_learner: int) -> Update:
        """One step of Adam; target network, exploration and resets follow."""
        if self._epsilon is not None:
            self._epsilon.follow(t_learner)
        # The target's clock is kept with its weights: a resumed learner misses no reset and repeats none.
        t_before = self.target.last_step if self._resets else None
        update = super().update(experience, t_learner)
        if self._resets and t_before is not None and self._resets.follow(t_before, t_learner):
            self.target.copy()
        return update

    def _draws(self, rows: int) -> list[Noise]:
        """Selection, target and online noise, each the same for all rows."""
        drawn = draw_noise(self.online.noise_sizes, 3, self._generator, self.device)
        return [{name: noise[row : row + 1] for name, noise in drawn.items()} for row in range(3)]
