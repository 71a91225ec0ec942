"""From vector steps to rollouts for an on-policy learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acting.links.link import Writer
from acting.links.weights import ActingWeights
from acting.player import VectorStep
from agents.base import Diverged, RolloutActing
from memory.chunks.codec import Meta
from memory.rollouts.blocks import RolloutPacket, rollout_to_bytes
from memory.rollouts.rollout import Rollout


@dataclass(frozen=True)
class RolloutShape:
    """How long the rollouts of a run are; named as the flags."""

    rollout_length: int  # T, vector steps
    history_length: int  # H, frames per state


class RolloutWriter(Writer):
    """Gathers T vector steps of all environments and packs them as one rollout."""

    def __init__(self, shape: RolloutShape, environments: int, sequence: int, meta: Meta) -> None:
        """`sequence`: of the actor's last rollout; `meta`: where the rollouts come from (run, actor)."""
        self._shape, self._sequence, self._meta = shape, sequence, meta
        self._steps: list[VectorStep] = []
        self._before: list[NDArray[Any]] = []  # up to H - 1 frames from before the rollout
        self._ages = [np.zeros(environments, np.int64)]  # of the frames from the rollout's first on
        self._updates = self._weights_epoch = 0
        self._begins_anew = True  # nothing that these environments did was packed yet

    def weights_changed(self, weights: ActingWeights) -> None:
        """From now on steps are played with these weights; only called between two rollouts."""
        self._updates, self._weights_epoch = weights.updates, weights.epoch

    def add(self, step: VectorStep) -> list[RolloutPacket]:
        """Add a vector step; returns the rollout that it completed. Raises Diverged."""
        self._steps.append(step)
        self._ages.append(np.where(step.active, self._ages[-1] + 1, 0))
        self.weights_may_change = len(self._steps) == self._shape.rollout_length
        return [self._pack()] if self.weights_may_change else []

    def flush(self, frames: NDArray[Any]) -> list[RolloutPacket]:
        """Nothing: the steps of an unfinished rollout are dropped, too old to learn from after a restart."""
        return []

    def _pack(self) -> RolloutPacket:
        rollout = self._rollout()
        self._sequence += 1
        version: Meta = {"updates": self._updates, "weights_epoch": self._weights_epoch}
        order: Meta = {"sequence": self._sequence, "begins_anew": self._begins_anew}
        self._begins_anew = False
        before = self._shape.history_length - 1
        self._before = [*self._before, *(step.frames for step in self._steps)][-before:] if before else []
        self._steps, self._ages = [], self._ages[-1:]
        return RolloutPacket(rollout_to_bytes(rollout, {**self._meta, **version, **order}), rollout.steps)

    def _rollout(self) -> Rollout:
        steps = self._steps
        environments = len(steps[0].active)
        looked = all(step.acting is not None for step in steps)
        return Rollout(
            frames=self._frames(),
            ages=np.stack(self._ages),
            a_t=np.stack([step.a_t for step in steps]),
            log_prob=self._log_prob() if looked else np.zeros((len(steps), environments), np.float32),
            rewards=np.stack([step.rewards for step in steps]).astype(np.float32),
            terminated=np.stack([step.terminated for step in steps]),
            truncated=np.stack([step.truncated for step in steps]),
            active=np.stack([step.active for step in steps]),
            looked=np.full(environments, looked),
            stream=np.arange(environments),
            continues=np.zeros(environments, np.bool_),
            updates=np.full(environments, self._updates),
        )

    def _frames(self) -> NDArray[Any]:
        """[H - 1 + T + 1, B, *frame]; zeros where the actor has seen nothing yet."""
        seen = [*self._before, *(step.frames for step in self._steps), self._steps[-1].next_frames]
        missing = self._shape.history_length + self._shape.rollout_length - len(seen)
        return np.stack([*[np.zeros_like(seen[0])] * missing, *seen])

    def _log_prob(self) -> NDArray[np.float32]:
        actings = [step.acting for step in self._steps]
        log_prob = np.stack([acting.log_prob for acting in actings if isinstance(acting, RolloutActing)])
        assert len(log_prob) == len(actings)
        if not np.isfinite(log_prob).all():
            raise Diverged("The policy's probabilities are not finite; try a lower --lr.")
        return log_prob.astype(np.float32)
