"""BTR's update (Clark et al. 2024, arXiv 2411.03820) written plainly in PyTorch.

PyTorch's own spectral norm, autocast, channels-last weights and Adam; every step is launched by itself. From
ours it takes hyper-parameters and the batch; IQN's network and noise are those of agent.py.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from agents.base import TensorBatch
from agents.iqn import IqnConfig
from benchmarks.original.agent import OriginalIqn, Randomness
from benchmarks.original.learner import PlainLearner
from wiring.setting import Setting

CHANNELS = (32, 64, 64)
FEATURES = 6 * 6 * CHANNELS[-1]


class Residual(nn.Module):
    """Two convolutions with a spectral norm, around which the input goes too."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = spectral_norm(nn.Conv2d(channels, channels, 3, padding=1))
        self.second = spectral_norm(nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        """x [B, channels, h, w] -> the same shape."""
        residual: Tensor = self.second(functional.relu(self.first(functional.relu(x))))
        return x + residual


def residual_stages(inputs: int) -> nn.Sequential:
    """Frames [B, inputs, 84, 84] -> features [B, FEATURES]."""
    layers: list[nn.Module] = []
    for channels in CHANNELS:
        layers += [nn.Conv2d(inputs, channels, 3, padding=1), nn.MaxPool2d(3, 2, padding=1)]
        layers += [Residual(channels), Residual(channels)]
        inputs = channels
    return nn.Sequential(*layers, nn.ReLU(), nn.AdaptiveMaxPool2d(6), nn.Flatten())


class PlainBtr(PlainLearner[OriginalIqn, list[Randomness]]):
    """For a setting of specs/atari/btr.yaml."""

    def __init__(self, setting: Setting, device: torch.device, dtype: torch.dtype) -> None:
        """`dtype`: of forward passes, by autocast."""
        self._config, self._device, self._dtype = setting.args.select(IqnConfig), device, dtype
        assert setting.problem.num_actions is not None
        torch.manual_seed(setting.args.seed)
        torso = residual_stages(setting.problem.observation_shape[0]), FEATURES
        online = OriginalIqn(self._config, torso, setting.problem.num_actions)
        online.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        super().__init__(online, setting.args.max_grad_norm, lr=self._config.lr, eps=self._config.adam_eps)
        self.target = copy.deepcopy(self.online).requires_grad_(False).eval()

    def draw(self, rows: int) -> list[Randomness]:
        """Fresh taus and noise of the passes at s_t and s_tm1."""
        samples = self._config.num_tau_prime_samples, self._config.num_tau_samples
        return [
            Randomness(torch.rand(rows, count, device=self._device), self.online.draw_noise())
            for count in samples
        ]

    def losses(self, batch: TensorBatch, draws: list[Randomness]) -> Tensor:
        """Quantile Huber losses [B] of Munchausen targets, summed over N and averaged over N'."""
        (evaluating, learned), config = draws, self._config
        rows = torch.arange(len(batch.r_t), device=self._device)
        with torch.autocast(self._device.type, self._dtype, enabled=self._dtype != torch.float32):
            with torch.no_grad():
                self.target.keep_noise(evaluating.noise)
                z_t = self.target(batch.s_t, evaluating.taus).float()  # [B, N', A]
            self.online.keep_noise(learned.noise)
            z_all_tm1 = self.online(batch.s_tm1, learned.taus).float()  # [B, N, A]
        tau = config.munchausen_tau
        with torch.no_grad():
            log_policy_t = tau * functional.log_softmax(z_t.mean(1) / tau, 1).unsqueeze(1)  # [B, 1, A]
            soft_t = ((log_policy_t / tau).exp() * (z_t - log_policy_t)).sum(2)  # [B, N']
            log_policy_tm1 = tau * functional.log_softmax(z_all_tm1.mean(1) / tau, 1)[rows, batch.a_tm1]
            bonus = config.munchausen_alpha * log_policy_tm1.clamp(config.munchausen_clip, 0)
            targets = (batch.r_t + bonus).unsqueeze(1) + batch.discount_t.unsqueeze(1) * soft_t
        z_tm1 = z_all_tm1[rows, :, batch.a_tm1]  # [B, N]
        delta = targets.unsqueeze(1) - z_tm1.unsqueeze(2)  # [B, N, N']
        zeros, kappa = torch.zeros_like(delta), config.kappa
        huber = functional.huber_loss(delta, zeros, reduction="none", delta=kappa) / kappa
        quantile = (learned.taus.unsqueeze(2) - (delta.detach() < 0).float()).abs() * huber
        summed: Tensor = quantile.sum(1).mean(1)
        return summed
