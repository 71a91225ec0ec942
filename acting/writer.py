"""From vector steps to packets for Redis: chunks, with first priorities from the acting estimates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acting.links.link import Writer
from acting.player import VectorStep
from agents.base import Acting, Diverged, ReplayAgent
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import ChunkShape
from memory.chunks.codec import Meta
from memory.chunks.unfinished import Draft, Moments
from memory.replay.priorities import FIRST_LEAF, PriorityRule
from memory.runs.push import Packet


class ExperienceWriter(Writer):
    """The unfinished chunks of an actor's environments, for a replay."""

    def __init__(
        self, agent: ReplayAgent, environments: int, shape: ChunkShape, rule: PriorityRule, meta: Meta
    ) -> None:
        """`meta`: where the chunks come from (run, actor), kept in each."""
        self._agent = agent
        self._shape = shape
        self._rule = rule
        self._builder = ChunkBuilder(shape, environments, meta)
        self._largest = FIRST_LEAF

    def add(self, step: VectorStep) -> list[Packet]:
        """Add a vector step; returns the chunks that it completed. Raises Diverged."""
        assert step.acting is None or isinstance(step.acting, Acting)
        estimates = (None, None) if step.acting is None else (step.acting.chosen, step.acting.greedy)
        taken = step.a_t, step.rewards, step.terminated, step.truncated, step.active
        drafts = self._builder.add(Moments(step.frames, *taken, *estimates))
        return self._packets(drafts) if drafts else []

    def flush(self, frames: NDArray[Any]) -> list[Packet]:
        """What is left when the actor stops before `frames` [N, *frame], as short chunks."""
        drafts = self._builder.flush(frames)
        return self._packets(drafts) if drafts else []

    def state_dict(self) -> dict[str, Any]:
        """Unfinished chunks, and the largest leaf so far."""
        return {"builder": self._builder.state_dict(), "largest": float(self._largest)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`; ValueError for that of an older version or of other environments."""
        if "builder" not in state:
            raise ValueError("an older version saved its actor's unfinished chunks in another form")
        self._builder.load_state_dict(state["builder"])
        self._largest = np.float32(state["largest"])

    def _packets(self, drafts: list[Draft]) -> list[Packet]:
        data, sizes, targets, chosen, greedy = zip(*drafts, strict=True)
        leaves = np.zeros((len(drafts), self._shape.chunk_length), np.float32)
        whole = np.arange(self._shape.chunk_length) < np.array(sizes)[:, None]
        leaves[whole] = self._first_leaves(*map(np.concatenate, (targets, chosen, greedy)))
        return list(map(Packet, data, leaves, sizes))

    def _first_leaves(
        self, targets: NDArray[np.float32], chosen: NDArray[np.float32], greedy: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """First leaves [M] of transitions whose acting estimates are known.

        Args:
            targets: [M, 2] n-step return and discount.
            chosen: [M, K] acting estimates of a_tm1 at s_tm1; NaN where there are none.
            greedy: [M, K] those of the greedy action at s_t; NaN where there are none.

        Returns:
            Leaves of the first losses; the largest so far where an estimate is missing or the rule says so.
        """
        r_t, discount_t = targets.T
        known = ~np.isnan(chosen).any(axis=1)
        values = np.full(len(r_t), self._largest, np.float32)
        if known.any():
            has_bootstrap, terminal = ~np.isnan(greedy).any(axis=1), discount_t == 0
            unused = ~has_bootstrap & terminal  # its discount is 0, so that any number will do
            greedy[unused] = chosen[unused]
            known &= has_bootstrap | terminal
        if known.any():
            losses = self._agent.initial_losses(chosen[known], r_t[known], discount_t[known], greedy[known])
            if not np.isfinite(losses).all():
                raise Diverged("A first priority is not finite: lower --lr or --reward-clip.")
            values[known] = self._rule.leaves(losses)
            self._largest = np.maximum(self._largest, values[known].max())
            values[~known | (self._rule.first_priorities == "largest")] = self._largest
        return values
