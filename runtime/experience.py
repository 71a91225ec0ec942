"""From vector steps to packets for Redis: chunks of every environment, and their first priorities from what
acting computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.base import Acting, ReplayAgent
from memory.chunk import ChunkBuilder, ChunkShape, Draft, chunk_to_bytes
from memory.codec import Meta
from memory.priorities import FIRST_LEAF, PriorityRule
from memory.push import Packet
from runtime.player import VectorStep
from runtime.writer import Writer


class ExperienceWriter(Writer):
    """The unfinished chunks of an actor's environments."""

    def __init__(
        self, agent: ReplayAgent, environments: int, shape: ChunkShape, rule: PriorityRule, meta: Meta
    ) -> None:
        """`meta`: where the chunks come from (run, actor), kept in each."""
        self._agent = agent
        self._shape = shape
        self._rule = rule
        self._meta = meta
        self._builders = [ChunkBuilder(shape) for _ in range(environments)]
        self._largest = FIRST_LEAF

    def add(self, step: VectorStep) -> list[Packet]:
        """Take in a vector step; returns the chunks that it completed."""
        drafts: list[Draft] = []
        assert step.acting is None or isinstance(step.acting, Acting)
        nothing: list[None] = [None] * len(self._builders)
        chosen, greedy = (nothing, nothing) if step.acting is None else step.acting[1:]
        rewards, active = step.rewards.tolist(), step.active.tolist()  # plain values: quicker one by one
        terminated, truncated = step.terminated.tolist(), step.truncated.tolist()
        for row, builder in enumerate(self._builders):
            if active[row]:
                taken = step.a_t[row], rewards[row], terminated[row], truncated[row]
                drafts += builder.step(step.frames[row], *taken, chosen[row], greedy[row])
            else:
                drafts += builder.end(step.frames[row], greedy[row])
        return self._packets(drafts)

    def flush(self, frames: NDArray[Any]) -> list[Packet]:
        """The actor stops before `frames` [N, *frame]: what is left as short chunks."""
        return self._packets(
            [draft for row, b in enumerate(self._builders) for draft in b.flush(frames[row])]
        )

    def state_dict(self) -> dict[str, Any]:
        """Unfinished chunks, and the largest leaf so far."""
        return {
            "builders": [builder.state_dict() for builder in self._builders],
            "largest": float(self._largest),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""
        for builder, saved in zip(self._builders, state["builders"], strict=True):
            builder.load_state_dict(saved)
        self._largest = np.float32(state["largest"])

    def _packets(self, drafts: list[Draft]) -> list[Packet]:
        if not drafts:
            return []
        sizes = [draft.chunk.transitions for draft in drafts]
        first = np.split(self._first_leaves(drafts), np.cumsum(sizes)[:-1])
        return [self._packet(draft, values) for draft, values in zip(drafts, first, strict=True)]

    def _first_leaves(self, drafts: list[Draft]) -> NDArray[np.float32]:
        """Leaves of all transitions of `drafts`: the running maximum where the actor did not look."""
        width = max(draft.chosen.shape[1] for draft in drafts)
        chosen = np.concatenate([_widened(draft.chosen, width) for draft in drafts])
        greedy = np.concatenate([_widened(draft.greedy, width) for draft in drafts])
        r_t = np.concatenate([draft.chunk.r_t for draft in drafts])
        discount_t = np.concatenate([draft.chunk.discount_t for draft in drafts])
        unseen = (discount_t == 0) & np.isnan(greedy).any(axis=1)
        greedy[unseen] = chosen[unseen]  # a discount of 0 makes any valid estimate serve
        known = ~(np.isnan(chosen).any(axis=1) | np.isnan(greedy).any(axis=1))
        values = np.full(len(r_t), self._largest, np.float32)
        if known.any():
            losses = self._agent.initial_losses(chosen[known], r_t[known], discount_t[known], greedy[known])
            values[known] = self._rule.leaves(losses)
            self._largest = np.maximum(self._largest, values[known].max())
            values[~known] = self._largest
        return values

    def _packet(self, draft: Draft, values: NDArray[np.float32]) -> Packet:
        padded = np.zeros(self._shape.chunk_length, np.float32)
        padded[: len(values)] = values
        return Packet(chunk_to_bytes(draft.chunk, self._meta), padded, len(values))


def _widened(estimates: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Rows of NaN have width 1 when nothing was known in the whole draft."""
    return (
        estimates.copy()
        if estimates.shape[1] == width
        else np.full((len(estimates), width), np.nan, np.float32)
    )
