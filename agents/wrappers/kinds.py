"""One agent in games of several kinds: those whose frames or actions differ.

It has a part for each kind, an agent with torso and head of its own; the trunk between them (models/trunk.py)
is one for all. A part has an optimiser of its own, so that its steps in the trunk have the size of its own
gradients: a kind of large rewards does not decide the others' step sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from agents.base import AgentError, ReplayAgent, Update
from agents.parts.learning import LearningAgent
from agents.wrappers.acting_by import ActingBy
from memory.replay.batch import Batch
from models.trunk import trunk_of

SEPARATOR = "|"
"""Separates the games of a kind from the name of a weight of its part: "pong,breakout|q.bias"."""


class KindsAgent(ActingBy):
    """Learns from batches of one game each, in the part of that game's kind; acts in one game.

    Where its networks act alone it may have the part of that game only.
    """

    def __init__(self, parts: Mapping[str, ReplayAgent], game: str) -> None:
        """`parts`: of each game, the same for games of one kind; `game`: that it acts in."""
        self.act_by(parts[game])
        kinds = {part: ",".join(game for game in parts if parts[game] is part) for part in parts.values()}
        self._parts = {games: part for part, games in kinds.items()}
        self._kind_of = [kinds[part] for part in parts.values()]  # of each game
        self._metrics: dict[str, Mapping[str, Tensor]] = {}  # of each kind's last update
        _share_trunk([*self._parts.values()])

    def update(self, experience: Batch, t_learner: int) -> Update:
        """That of the part. Metrics: of each kind's last update, and their means."""
        assert experience.game is not None
        kind = self._kind_of[int(experience.game[0])]
        update = self._parts[kind].update(experience, t_learner)
        self._metrics[kind] = update.metrics
        return update._replace(metrics=_joined(self._metrics))

    def acting_weights(self) -> dict[str, Tensor]:
        """Those of all parts, the trunk's with each."""
        return {
            f"{games}{SEPARATOR}{name}": weight
            for games, part in self._parts.items()
            for name, weight in part.acting_weights().items()
        }

    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take them over; those of kinds that it has no part for are left out."""
        for games, part in self._parts.items():
            part.load_acting_weights(part_of(weights, games))

    def state_dict(self) -> dict[str, object]:
        """Those of all parts."""
        return {games: part.state_dict() for games, part in self._parts.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        if missing := self._parts.keys() - state.keys():
            raise AgentError(f"This state of an agent lacks a part for {', '.join(sorted(missing))}.")
        for games, part in self._parts.items():
            part.load_state_dict(state[games])


def part_of(weights: Mapping[str, Tensor], game: str) -> Mapping[str, Tensor]:
    """Of a KindsAgent's acting weights those that `game` is played with; of another agent's all.

    Raises AgentError where no part plays it.
    """
    kinds = {name.partition(SEPARATOR)[0]: None for name in weights if SEPARATOR in name}
    if not kinds:
        return weights
    games = next((kind for kind in kinds if game.split(",")[0] in kind.split(",")), None)
    if games is None:
        raise AgentError(f"These weights are of {', '.join(kinds)}, and of no network for {game}.")
    return {
        name.partition(SEPARATOR)[2]: weight
        for name, weight in weights.items()
        if name.startswith(games + SEPARATOR)
    }


def _joined(metrics: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    names = next(iter(metrics.values()))
    means = {name: torch.stack([own[name] for own in metrics.values()]).mean() for name in names}
    return means | {f"{name}/{kind}": own[name] for kind, own in metrics.items() for name in names}


def _share_trunk(parts: Sequence[ReplayAgent]) -> None:
    """Let the trunks of all parts be one memory: what any of them learns there is in all of them."""
    networks = [part.online for part in parts if isinstance(part, LearningAgent)]
    trunks = [trunk_of(network) for network in networks]
    if len(trunks) < len(parts) or not all(trunks):
        raise AgentError("This agent has no trunk that games of several kinds could share.")
    for part, trunk in zip(parts[1:], trunks[1:], strict=True):
        own = {name: weight for name, weight in part.acting_weights().items() if name not in trunk}
        part.load_acting_weights({**own, **trunks[0]})  # its target network's trunk, too
        with torch.no_grad():
            for name, weight in trunk.items():
                weight.data = trunks[0][name].data
