"""Resets: a network's head is drawn anew every `reset_every` steps, and learns again from the whole replay.

Nikishin et al. 2022 (arXiv 2205.07802): a network that has learned much from its first, few data learns less
from later ones. On Atari 100k they draw the last layer anew every 20,000 steps; here it is the whole head.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch

from agents.parts.weights import seeded
from models.dueling import DuelingNetwork

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ResetConfig:
    """Named as the flags; steps are agent steps of the learner's clock."""

    reset_every: int  # steps between two resets; 0: none
    t_max: int  # of the run


class HeadResets:
    """Draws the head anew when the clock crosses a multiple of `reset_every`.

    It does so as long as at least `reset_every` steps of the run remain. The torso and IQN's embedding of
    taus stay.
    """

    def __init__(
        self,
        config: ResetConfig,
        network: DuelingNetwork,
        adam: torch.optim.Adam,
        generator: torch.Generator,
    ) -> None:
        """`generator`: the learner's, which gives the seed of each new head."""
        self._config, self._network = config, network
        self._adam, self._generator = adam, generator

    def follow(self, t_before: int, t_learner: int) -> bool:
        """Called after every update with the clock of the last one and of this; whether there was a reset."""
        every = self._config.reset_every
        if t_learner // every == t_before // every or t_learner > self._config.t_max - every:
            return False
        seed = int(torch.randint(2**31, (), generator=self._generator))
        self._network.head.load_state_dict(seeded(self._network.new_head, seed).state_dict())
        for parameter in self._network.head.parameters():
            for moment in self._adam.state.get(parameter, {}).values():
                moment.zero_()
        log.info("The network's head is drawn anew at T_learner %s.", f"{t_learner:,}")
        return True
