"""Rainbow's update (Hessel et al. 2018, arXiv 1710.02298) written plainly in PyTorch, in float32.

PyTorch's own convolutions, linear layers and fused Adam; every step is launched by itself. From ours it
takes hyper-parameters and the batch.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from agents.base import TensorBatch
from agents.rainbow import RainbowAgent, RainbowConfig
from benchmarks.original.learner import PlainLearner
from benchmarks.original.networks import Noise, NoisyDueling, convolutions_of, in_streams
from wiring.setting import Setting


class PlainDistributions(NoisyDueling):
    """Frames [B, H, 84, 84] uint8 -> logits [B, A, Z] of the atoms."""

    def __init__(self, config: RainbowConfig, channels: int, num_actions: int) -> None:
        convolutions, features = convolutions_of(config.torso, channels)
        super().__init__(features, config.hidden_size, num_actions, config.atoms, config.noisy_std)
        self.convolutions = convolutions

    def forward(self, frames: Tensor) -> Tensor:
        """With the noise that it keeps."""
        return self.estimates(self.convolutions(frames.float() / 255))


class PlainRainbow(PlainLearner[PlainDistributions, list[Noise]]):
    """For a setting of rainbow on 84x84 frames."""

    def __init__(self, setting: Setting, device: torch.device) -> None:
        config, num_actions = setting.args.select(RainbowConfig), setting.problem.num_actions
        assert num_actions is not None
        torch.manual_seed(setting.args.seed)
        online = PlainDistributions(config, setting.problem.observation_shape[0], num_actions).to(device)
        super().__init__(online, setting.args.max_grad_norm, lr=config.lr, eps=config.adam_eps, fused=True)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self._config = config
        self._support = torch.linspace(config.v_min, config.v_max, config.atoms, device=device)  # [Z]

    def take_weights(self, agent: RainbowAgent) -> None:
        """Both networks become the agent's online network."""
        weights: dict[str, Tensor] = agent.online.state_dict()
        head = {name: weight for name, weight in weights.items() if name.startswith("head.")}
        for network in (self.online, self.target):
            result = network.load_state_dict(in_streams(head, self._config.hidden_size), strict=False)
            assert not result.unexpected_keys  # what is missing is noise, and what follows
            for own, other in zip(_convolutions(network), _convolutions(agent.online.torso), strict=True):
                own.load_state_dict(other.state_dict())

    def draw(self, rows: int) -> list[Noise]:
        """Fresh noise of the passes that select, evaluate and learn; it is the same for all rows."""
        return [self.online.draw_noise() for _ in range(3)]

    def losses(self, batch: TensorBatch, draws: list[Noise]) -> Tensor:
        """Cross-entropies [B] with the projected target, by Double Q-learning."""
        selecting, evaluating, learned = draws
        rows = torch.arange(len(batch.r_t), device=batch.r_t.device)
        with torch.no_grad():
            self.online.keep_noise(selecting)
            a_t = (self.online(batch.s_t).softmax(2) @ self._support).argmax(1)
            self.target.keep_noise(evaluating)
            projected = self._projected(self.target(batch.s_t)[rows, a_t].softmax(1), batch)
        self.online.keep_noise(learned)
        log_p_tm1 = self.online(batch.s_tm1)[rows, batch.a_tm1].log_softmax(1)  # [B, Z]
        losses: Tensor = -(projected * log_p_tm1).sum(1)
        return losses

    def _projected(self, probabilities: Tensor, batch: TensorBatch) -> Tensor:
        """[B, Z]: each atom's mass goes to the two nearest (arXiv 1707.06887, algorithm 1)."""
        config, last = self._config, self._config.atoms - 1
        moved = batch.r_t.unsqueeze(1) + batch.discount_t.unsqueeze(1) * self._support
        moved = moved.clamp(config.v_min, config.v_max)
        place = ((moved - config.v_min) * (last / (config.v_max - config.v_min))).clamp(0, last)
        lower = place.floor()
        to_upper, index = place - lower, lower.long()
        projected = torch.zeros_like(probabilities)
        projected.scatter_add_(1, index, probabilities * (1 - to_upper))
        projected.scatter_add_(1, (index + 1).clamp(max=last), probabilities * to_upper)
        return projected


def _convolutions(network: nn.Module) -> list[nn.Conv2d]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
