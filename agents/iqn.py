"""Rainbow-IQN (Toromanoff et al. 2019, arXiv 1908.04683): IQN with Double, dueling and noisy networks.

IQN: Dabney et al. 2018, arXiv 1806.06923. n-step returns and the priorities' exponents are the replay's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, Problem, TensorBatch
from agents.losses import Estimate, of_action, quantile_huber_loss
from agents.parts.munchausen import MunchausenConfig, bootstrap_of
from agents.parts.off_policy import NoisyAgent, NoisyConfig
from models.iqn import IqnNetwork
from models.layers import DuelingConfig
from models.noisy import Noise


@dataclass(frozen=True)
class IqnConfig(NoisyConfig, MunchausenConfig):
    """Hyper-parameters of IQN; the symbols are those of its equation 3."""

    num_tau_samples: int  # N: taus per transition for the online network at s_tm1
    num_tau_prime_samples: int  # N': taus per transition for the target network at s_t
    num_quantile_samples: int  # K: taus for selecting actions, in acting and for the argmax at s_t
    quantile_embedding_dim: int  # cosines that embed a tau
    kappa: float  # where the Huber loss turns linear


class IqnAgent(NoisyAgent[IqnConfig, IqnNetwork]):
    """Acting estimates are K quantiles in the order of their taus; the loss sums over N, averages over N'."""

    config_type = IqnConfig
    _losses_are_pure = True
    priority_exponent = 0.2  # Toromanoff et al. 2019 (arXiv 1908.04683): IQN needs a lower one than Rainbow

    def __init__(
        self, problem: Problem, config: IqnConfig, device: torch.device, seed: int, learning: bool
    ) -> None:
        super().__init__(problem, config, device, seed, learning)
        self._bootstrap = bootstrap_of(config, self._bootstrap)

    def _build_network(self, config: DuelingConfig) -> IqnNetwork:
        return IqnNetwork(config, self.config.quantile_embedding_dim)

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Noise of every noisy layer, and K taus, sorted: `initial_losses` pairs them with midpoints."""
        taus = self._draw_taus(rows, self.config.num_quantile_samples, generator).sort(1).values
        return {**super().draw_acting_noise(rows, generator), "taus": taus}

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """Zeros, and the midpoints of K equal parts of [0, 1] as taus."""
        taus = _midpoints(rows, self.config.num_quantile_samples).to(self.device)
        return {**super().mean_acting_noise(rows), "taus": taus}

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """The quantile Huber loss of the acting quantiles.

        The acting taus are not stored: sorted, they are nearly the midpoints of K equal parts of [0, 1]. The
        loss sums K quantiles here and N in the learner, hence N / K.
        """
        chosen, targets = self._bootstrap.first_targets(chosen_tm1, r_t, discount_t, greedy_t)  # [M, K]
        quantiles, td_targets = torch.from_numpy(chosen), torch.from_numpy(targets)
        rows, samples = chosen.shape
        losses = quantile_huber_loss(quantiles, _midpoints(rows, samples), td_targets, self.config.kappa)
        rescaled: NDArray[Any] = (losses * (self.config.num_tau_samples / samples)).numpy()
        return rescaled

    def act_independently(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """`act` without skipping features that are 0 in every row: no row influences another."""
        return self.act(s_t, noise, independent_rows=True)

    @torch.inference_mode()
    def act(self, s_t: NDArray[Any], noise: ActingNoise, independent_rows: bool = False) -> Acting:
        """Greedy actions, but where the noise explores."""
        states = torch.from_numpy(s_t).to(self.device)
        quantiles = self._forward(self.online, states, noise["taus"], noise, independent_rows)  # [N, K, A]
        return self._acting(states, quantiles.transpose(1, 2), quantiles.mean(1), noise)

    def estimates(self, s_t: Tensor) -> Tensor:
        """[N, K, A]."""
        noise = self.mean_acting_noise(len(s_t))
        quantiles: Tensor = self.online(s_t.to(self.device), noise["taus"], noise)
        return quantiles

    def _draws(self, rows: int) -> list[Noise]:
        """With K, N' and N taus for each row."""
        config, draws = self.config, super()._draws(rows)
        samples = config.num_quantile_samples, config.num_tau_prime_samples, config.num_tau_samples
        for number, count in enumerate(samples):
            draws[number] = {**draws[number], "taus": self._draw_taus(rows, count, self._generator)}
        return draws

    def _losses(
        self, batch: TensorBatch, for_selection: Noise, for_targets: Noise, for_learning: Noise
    ) -> tuple[Tensor, Tensor]:
        config, rows, taus = self.config, len(batch.r_t), for_learning["taus"]
        quantiles_tm1 = self._forward(self.online, batch.s_tm1, taus, for_learning)  # [B, N, A]
        taken_tm1 = of_action(quantiles_tm1.transpose(1, 2), batch.a_tm1)
        assert taken_tm1.shape == (rows, config.num_tau_samples)
        with torch.no_grad():
            online = self._estimate(self.online, for_selection)
            target = self._estimate(self.target.network, for_targets)
            td_targets = self._bootstrap.targets(batch, quantiles_tm1.mean(1), online, target)  # [B, N']
            assert td_targets.shape == (rows, config.num_tau_prime_samples)
        return quantile_huber_loss(taken_tm1, taus, td_targets, config.kappa), taken_tm1.mean(1)

    def _estimate(self, network: IqnNetwork, noise: Noise) -> Estimate:
        return lambda observation: self._forward(network, observation, noise["taus"], noise).transpose(1, 2)

    def _draw_taus(self, rows: int, samples: int, generator: torch.Generator) -> Tensor:
        rank, ranks = self.share
        of_all = torch.rand(rows * ranks, samples, generator=generator, device=generator.device)
        return of_all[rank::ranks].to(self.device)


def _midpoints(rows: int, samples: int) -> Tensor:
    """[rows, samples]: (k + 1/2) / samples for k = 0 .. samples - 1."""
    return ((torch.arange(samples) + 0.5) / samples).repeat(rows, 1)
