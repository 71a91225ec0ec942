"""Rainbow-IQN (Toromanoff et al. 2019, arXiv 1908.04683): IQN with Double, dueling and noisy networks.

IQN: Dabney et al. 2018, arXiv 1806.06923. n-step returns and the priorities' exponents are the replay's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import ActingNoise, AgentError, Problem
from agents.learning import TensorBatch
from agents.losses import quantile_huber_loss
from agents.value import ValueAgent, ValueConfig, chosen_of
from models.dueling import NetworkConfig, State
from models.iqn import IqnNetwork


@dataclass(frozen=True)
class IqnConfig(ValueConfig):
    """Hyper-parameters of IQN; the symbols are those of its equation 3."""

    num_tau_samples: int  # N: taus per transition for the online network at s_tm1
    num_tau_prime_samples: int  # N': taus per transition for the target network at s_t
    num_quantile_samples: int  # K: taus for choosing actions, in acting and for the argmax at s_t
    quantile_embedding_dim: int  # cosines that embed a tau
    kappa: float  # where the Huber loss turns linear


class IqnAgent(ValueAgent[IqnConfig, IqnNetwork]):
    """Acting estimates are K quantiles in the order of their taus; the loss sums over N, averages over N'."""

    config_type = IqnConfig
    priority_exponent = 0.2  # Toromanoff et al. 2019 (arXiv 1908.04683): IQN needs a lower one than Rainbow

    def __init__(
        self, problem: Problem, config: IqnConfig, device: torch.device, seed: int, learning: bool
    ) -> None:
        if config.kappa <= 0:
            raise AgentError(f"kappa must be above 0, not {config.kappa}.")
        super().__init__(problem, config, device, seed, learning)

    def _build_network(self, network: NetworkConfig) -> IqnNetwork:
        return IqnNetwork(network, self.config.quantile_embedding_dim)

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Noise of every noisy layer, and K taus in ascending order: that leaves their mean what it is."""
        taus = self._draw_taus(rows, self.config.num_quantile_samples, generator).sort(1).values
        return {**super().draw_acting_noise(rows, generator), "taus": taus}

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """Zeros, and the midpoints of K equal parts of [0, 1] as taus."""
        midpoints = _midpoints(rows, self.config.num_quantile_samples).to(self.device)
        return {**super().mean_acting_noise(rows), "taus": midpoints}

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """Midpoints stand for the (ordered) acting taus; N / K turns a sum over K into one over N."""
        rows, samples = chosen_tm1.shape
        targets = torch.from_numpy(r_t[:, None] + discount_t[:, None] * greedy_t)  # [M, K]
        taus = _midpoints(rows, samples)
        losses = quantile_huber_loss(torch.from_numpy(chosen_tm1), taus, targets, self.config.kappa)
        rescaled: NDArray[Any] = (losses * (self.config.num_tau_samples / samples)).numpy()
        return rescaled

    def _outputs(self, network: IqnNetwork, state: State, noise: ActingNoise) -> Tensor:
        """[B, A, N] float32 at the noise's taus [B, N]."""
        return self._run(network, state, noise["taus"], noise).transpose(1, 2)

    def _estimates(self, outputs: Tensor) -> Tensor:
        return outputs

    def _q(self, estimates: Tensor) -> Tensor:
        return estimates.mean(-1)

    def _losses(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        config = self.config
        samples = (config.num_quantile_samples, config.num_tau_prime_samples, config.num_tau_samples)
        chooses, judges, learns = self._draw(len(batch.r_t), samples)
        quantiles, a_t, quantiles_t = self._double_passes(batch, learns, chooses, judges)
        best_t = chosen_of(quantiles_t, a_t)  # [B, N']
        targets = batch.r_t.unsqueeze(1) + batch.discount_t.unsqueeze(1) * best_t
        quantiles_tm1 = chosen_of(quantiles, batch.a_tm1)  # [B, N]
        losses = quantile_huber_loss(quantiles_tm1, learns["taus"], targets, config.kappa)
        return losses, self._q(quantiles_tm1)

    @torch.no_grad()
    def _preferred(self, s_t: State, noise: ActingNoise) -> Tensor:
        """By the advantages alone, which tell the best action too."""
        relative: Tensor = self._run(self.chooser, s_t, noise["taus"], noise, True)  # [B, K, A]
        return relative.mean(1).argmax(1)

    def _draw(self, rows: int, samples: Sequence[int]) -> Iterator[ActingNoise]:
        """For each pass as many taus [rows, samples], and noise that all rows share."""
        for number, noise in zip(samples, self._learning_noise(len(samples)), strict=True):
            yield {**noise, "taus": self._draw_taus(rows, number, self._generator)}

    def _draw_taus(self, rows: int, samples: int, generator: torch.Generator) -> Tensor:
        return torch.rand(rows, samples, generator=generator, device=generator.device).to(self.device)


def _midpoints(rows: int, samples: int) -> Tensor:
    """[rows, samples]: (k + 1/2) / samples for k = 0 .. samples - 1."""
    return ((torch.arange(samples) + 0.5) / samples).repeat(rows, 1)
