"""Rollouts as the learner uses them: stacked states, returns of value heads, slices and minibatches.

And what continues from rollout to rollout in each stream: sums of rewards, and episodes under way.
A flat index k = t * B + b names row t of stream b; that row's state after the step is the one of index k + B.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.on_policy.losses import Trajectories
from memory.rollouts.rollout import Rollout

log = logging.getLogger(__name__)

PER_STEP = ("a_t", "log_prob", "rewards", "terminated", "truncated", "active")
"""Names of the columns of a rollout that have T rows, one for each step."""
LONG_EPISODE = 27_000
"""Agent steps of 30 minutes of Atari (Machado et al. 2018), 60 frames a second and four to a step."""


def transition_mask(rollout: Rollout) -> Tensor:
    """[T, B] bool: the rows to learn from, neither restarts nor played at random."""
    return torch.from_numpy(rollout.active & rollout.looked)


def flat_indices(mask: Tensor) -> Tensor:
    """[N] flat indices t * B + b of the rows of `mask` [T, B]."""
    return mask.flatten().nonzero().squeeze(1)


def new_frames(rollout: Rollout) -> Tensor:
    """[T * B, *frame]: those after each step, so that successive rollouts have each frame once."""
    return torch.from_numpy(rollout.frames[-len(rollout.active) :]).flatten(0, 1)


class RolloutStates:
    """The frames of a rollout, once on the device; stacked states are cut from them on demand."""

    def __init__(self, rollout: Rollout, device: torch.device) -> None:
        self.length, self.streams = rollout.active.shape
        self.history = len(rollout.frames) - self.length
        frames = torch.from_numpy(rollout.frames).to(device)
        self._frames = frames.flatten(0, 1)  # [(H - 1 + T + 1) * B, *frame]
        self._ages = torch.from_numpy(rollout.ages).to(device).flatten()  # [(T + 1) * B]
        self._offsets = torch.arange(1 - self.history, 1, device=device)  # [H] of a state's frames in time

    @property
    def indices(self) -> Tensor:
        """[(T + 1) * B]: all states, those after the last step included."""
        return torch.arange(len(self._ages), device=self._ages.device)

    def stacks(self, indices: Tensor) -> Tensor:
        """[M, H, *frame] in the frames' own type; frames before an episode's first are zero."""
        rows = indices.unsqueeze(1) + (self.history - 1 + self._offsets) * self.streams  # [M, H]
        frames = self._frames.index_select(0, rows.flatten())  # many times faster than self._frames[rows]
        in_episode = self._ages[indices].unsqueeze(1) + self._offsets >= 0
        frames *= in_episode.view(-1, *(1,) * (frames.dim() - 1))
        return frames.view(*rows.shape, *frames.shape[1:])

    def newest(self, indices: Tensor) -> Tensor:
        """[M, *frame]: the newest frame of each state."""
        return self._frames.index_select(0, indices + (self.history - 1) * self.streams)


def episodic_steps(
    rollout: Rollout, rewards: Tensor, values: Tensor, discount: float, gae_lambda: float
) -> Trajectories:
    """Steps whose returns end with the episode: rewards [T, B], values [T + 1, B].

    After a termination nothing follows. A truncation bootstraps from the value of the true last frame, which
    is the one of the next row, or the rollout's last; its trace ends there too.
    """
    assert values.shape == (len(rewards) + 1, rewards.shape[1])
    terminated, truncated = torch.from_numpy(rollout.terminated), torch.from_numpy(rollout.truncated)
    return Trajectories(
        rewards,
        discount * (~terminated).to(values),
        gae_lambda * (~(terminated | truncated)).to(values),
        values[:-1],
        values[1:],
    )


def unbroken_steps(
    rollout: Rollout, rewards: Tensor, values: Tensor, discount: float, gae_lambda: float
) -> Trajectories:
    """Steps whose returns continue over the ends of episodes: rewards [T, B], values [T + 1, B].

    A row that only restarts passes the return of the row after it through: reward 0, discount 1, trace 1 and
    that row's value. So an episode's last step bootstraps from the next one's first frame or, where that is
    in the next rollout, from the episode's last frame.
    """
    assert values.shape == (len(rewards) + 1, rewards.shape[1])
    active = torch.from_numpy(rollout.active)
    from_first = torch.cat([torch.where(active, values[:-1], values[1:]), values[-1:]])
    ones = torch.ones_like(rewards)
    return Trajectories(
        torch.where(active, rewards, 0.0),
        torch.where(active, discount * ones, ones),
        torch.where(active, gae_lambda * ones, ones),
        from_first[:-1],
        from_first[1:],
    )


def minibatches(rows: Tensor, batch_size: int, epochs: int, generator: torch.Generator) -> Iterator[Tensor]:
    """`rows` [N] in a new order for each epoch, in parts of about `batch_size` that differ by one at most."""
    parts = max(round(len(rows) / batch_size), 1)
    for _ in range(epochs):
        yield from rows[torch.randperm(len(rows), generator=generator)].tensor_split(parts)


class _StreamSums:
    """A running sum of each stream's rewards, at the end of its last rollout."""

    def __init__(self) -> None:
        self._sums: dict[int, float] = {}

    def _before(self, rollout: Rollout, unknown: float) -> NDArray[np.float64]:
        """[B]: the sums where the streams continue their last rollout; `unknown` elsewhere."""
        sums = [self._sums.get(stream, unknown) for stream in rollout.stream.tolist()]
        return np.where(rollout.continues, sums, unknown)

    def _keep(self, rollout: Rollout, sums: NDArray[np.float64]) -> None:
        self._sums.update(zip(rollout.stream.tolist(), sums.tolist(), strict=True))

    def state_dict(self) -> dict[str, object]:
        """The sums that are known."""
        known = {stream: total for stream, total in self._sums.items() if not math.isnan(total)}
        return {"streams": list(known), "sums": list(known.values())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self._sums = dict(zip(state["streams"], state["sums"], strict=True))


class ForwardFilter(_StreamSums):
    """sum_k discount^k r_{t-k}: the discounted rewards so far, by whose spread RND's rewards are scaled.

    It stands for the return, which is not known yet at t (Burda et al. 2018, their code).
    """

    def __init__(self, discount: float) -> None:
        super().__init__()
        self._discount = discount

    def update(
        self, rollout: Rollout, rewards: NDArray[np.float32], mask: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """rewards, mask [T, B] -> sums [T, B]; rows outside the mask change nothing.

        A stream that does not continue its last rollout begins with 0.
        """
        total = self._before(rollout, unknown=0.0)
        sums = np.empty(rewards.shape)
        for t, reward in enumerate(rewards):
            total = np.where(mask[t], self._discount * total + reward, total)
            sums[t] = total
        self._keep(rollout, total)
        return sums


class EpisodeSums(_StreamSums):
    """Adds up the rewards of whole episodes."""

    def update(self, rollout: Rollout, rewards: NDArray[np.float32]) -> list[float]:
        """rewards [T, B] -> the sums of the episodes that ended here and are known from their first step.

        A stream that does not continue its last rollout is known from its next episode on.
        """
        sums = np.where(rollout.ages[0] == 0, 0.0, self._before(rollout, unknown=np.nan))  # [B]
        finished: list[float] = []
        ended = rollout.active & (rollout.terminated | rollout.truncated)
        for reward, active, last in zip(rewards, rollout.active, ended, strict=True):
            sums = np.where(active, sums + reward, sums)
            finished += sums[last & ~np.isnan(sums)].tolist()
            sums = np.where(last, 0.0, sums)
        self._keep(rollout, sums)
        return finished


class OpenEpisodes:
    """Holds steps back until their episode has ended, over as many rollouts as that takes.

    Keeps the frames of episodes that are under way; a stream that does not continue, or that one rollout
    lacks, loses them.
    """

    def __init__(self) -> None:
        self._rollout: Rollout | None = None  # the steps that wait, and those between them
        self._waiting = np.zeros((0, 0), np.bool_)  # [T, B] rows of it whose episode has not ended
        self._has_warned = False

    def ended(self, rollout: Rollout, transitions: NDArray[np.bool_]) -> tuple[Rollout, NDArray[np.bool_]]:
        """The rollout with what waited before it, and the mask [T, B] of its rows whose episode has ended.

        `transitions` [T, B]: the rows to learn from, sooner or later.
        """
        joined, waiting = self._join(rollout, transitions)
        ends = joined.terminated | joined.truncated
        over = np.logical_or.accumulate(ends[::-1])[::-1]  # this row's episode, or a later one, ends
        self._keep(joined, waiting & ~over)
        return joined, waiting & over

    def _join(self, rollout: Rollout, transitions: NDArray[np.bool_]) -> tuple[Rollout, NDArray[np.bool_]]:
        kept = self._rollout
        if kept is None:
            return rollout, transitions
        order = np.argsort(kept.stream)
        places = order[np.searchsorted(kept.stream, rollout.stream, sorter=order).clip(max=len(order) - 1)]
        goes_on = rollout.continues & (kept.stream[places] == rollout.stream)
        waited = self._waiting[:, places] & goes_on
        if not waited.any():
            return rollout, transitions
        return _concatenated(_taken(kept, np.s_[:, places]), rollout), np.concatenate([waited, transitions])

    def _keep(self, rollout: Rollout, waiting: NDArray[np.bool_]) -> None:
        rows = waiting.any(1)
        start = int(rows.argmax())
        self._rollout = _taken(rollout, np.s_[start:]) if rows.any() else None
        self._waiting = waiting[start:]
        if len(self._waiting) >= LONG_EPISODE and not self._has_warned:
            self._has_warned = True
            log.warning(
                "An episode has not ended for %s steps, and nothing is learned from it before: it fills the"
                " memory; --max-episode-steps sets an end.",
                f"{LONG_EPISODE:,}",
            )


def _concatenated(first: Rollout, second: Rollout) -> Rollout:
    """`first`, then `second`. The last H frames of `first` are the first of `second`, except in a stream that
    does not continue: there only rows of `second` are learned from.
    """
    history = len(second.frames) - len(second.active)
    columns = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in PER_STEP}
    frames = np.concatenate([first.frames[:-history], second.frames])
    return second._replace(frames=frames, ages=np.concatenate([first.ages[:-1], second.ages]), **columns)


def _taken(rollout: Rollout, index: Any) -> Rollout:
    """Its steps of the time steps and streams that `index` takes out of [T, B]."""
    columns = {name: getattr(rollout, name)[index] for name in (*PER_STEP, "frames", "ages")}
    return rollout._replace(**columns)
