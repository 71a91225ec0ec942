"""IQN's learner in the seed's manner: eager, in float32, one pass after the other."""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import Tensor

from agents.iqn import IqnConfig
from agents.learning import TensorBatch, batch_to_device
from benchmarks.naive.network import NaiveIqn, Noise
from memory.replay.batch import Batch


class Draws(NamedTuple):
    """All that is random in one loss; taus are [B, samples]."""

    taus_t: Tensor
    noise_t: Noise
    taus_prime: Tensor
    noise_prime: Noise
    taus_tm1: Tensor
    noise_tm1: Noise


class NaiveLearner:
    """Online and target network and Adam."""

    def __init__(self, config: IqnConfig, history_length: int, num_actions: int) -> None:
        self._config = config
        self.online = NaiveIqn(
            config.torso,
            history_length,
            config.hidden_size,
            num_actions,
            config.quantile_embedding_dim,
            config.noisy_std,
        )
        self.target = copy.deepcopy(self.online)
        self._adam = torch.optim.Adam(self.online.parameters(), lr=config.lr, eps=config.adam_eps)

    def update(self, batch: Batch) -> Tensor:
        """One step of Adam; returns the losses [B] before importance weights."""
        tensors = batch_to_device(batch, torch.device("cpu"))
        losses = self.losses(tensors, self.draw(len(tensors.r_t)))
        self.take((tensors.weights * losses).mean())
        return losses.detach()

    def take(self, loss: Tensor) -> None:
        """One step of Adam down `loss`."""
        self._adam.zero_grad()
        torch.autograd.backward(loss)
        self._adam.step()

    def priorities(self, batch: TensorBatch) -> Tensor:
        """[B] losses of an actor's own transitions, by separate passes."""
        with torch.no_grad():
            return self.losses(batch, self.draw(len(batch.r_t)))

    def draw(self, rows: int) -> Draws:
        """Fresh taus and noise for the three passes."""
        config = self._config
        return Draws(
            torch.rand(rows, config.num_quantile_samples),
            self.online.draw_noise(),
            torch.rand(rows, config.num_tau_prime_samples),
            self.target.draw_noise(),
            torch.rand(rows, config.num_tau_samples),
            self.online.draw_noise(),
        )

    def losses(self, batch: TensorBatch, draws: Draws) -> Tensor:
        """[B]: the quantile Huber losses, summed over N and averaged over N'."""
        rows = torch.arange(len(batch.r_t))
        with torch.no_grad():
            self.online.keep_noise(draws.noise_t)
            a_t = self.online(batch.s_t, draws.taus_t).mean(1).argmax(1)
            self.target.keep_noise(draws.noise_prime)
            z_t = self.target(batch.s_t, draws.taus_prime)[rows, :, a_t]  # [B, N']
            targets = batch.r_t.unsqueeze(1) + batch.discount_t.unsqueeze(1) * z_t
        self.online.keep_noise(draws.noise_tm1)
        z_tm1 = self.online(batch.s_tm1, draws.taus_tm1)[rows, :, batch.a_tm1]  # [B, N]
        delta = targets.unsqueeze(1) - z_tm1.unsqueeze(2)  # [B, N, N']
        kappa = self._config.kappa
        huber = torch.where(delta.abs() <= kappa, delta**2 / 2, kappa * (delta.abs() - kappa / 2))
        quantile = (draws.taus_tm1.unsqueeze(2) - (delta.detach() < 0).float()).abs() * huber / kappa
        summed: Tensor = quantile.sum(1).mean(1)
        return summed
