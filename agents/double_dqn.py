"""Double DQN (van Hasselt, Guez, Silver 2016, arXiv 1509.06461)."""

from __future__ import annotations

from torch import Tensor

from agents.dqn import DqnAgent


class DoubleDqnAgent(DqnAgent):
    """DQN whose target network evaluates the action that the online network selects (their Y^DoubleDQN)."""

    def _value_t(self, s_t: Tensor) -> Tensor:
        a_t = self._forward(self.online, s_t).argmax(1, keepdim=True)
        return self._forward(self.target.network, s_t).gather(1, a_t).squeeze(1)
