"""Scores of running episodes, at the three times of play that SABER reports (Toromanoff et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acting.action_counter import ActionCounter
from acting.visited_rooms import VisitedRooms
from envs import EnvDescription


class FinishedEpisode(NamedTuple):
    """What is left of an episode that ended."""

    environment: int  # row of the vector of environments
    score_5min: float  # raw score within the first 5 minutes of play
    score_30min: float
    score_saber: float  # raw score of the whole episode
    length: int  # agent steps
    action_counts: list[list[int]]  # see ActionCounter
    rooms: list[int]  # that it came to, in ascending order; empty where the game tells of none


def steps_of_minutes(minutes: int, frames_per_second: float | None, frames_per_step: int) -> int | None:
    """Agent steps in `minutes` of play; None where minutes have no meaning.

    >>> steps_of_minutes(5, frames_per_second=60.0, frames_per_step=4)
    4500
    """
    return None if frames_per_second is None else round(minutes * 60 * frames_per_second / frames_per_step)


class EpisodeTracker:
    """Adds up the raw rewards of N environments, counts their actions, and tells which episodes ended.

    A cap of None counts the whole episode.
    """

    def __init__(
        self,
        num_envs: int,
        cap_5min_steps: int | None,
        cap_30min_steps: int | None,
        action_counter: ActionCounter,
    ) -> None:
        caps = [np.inf if cap is None else cap for cap in (cap_5min_steps, cap_30min_steps, None)]
        self._caps = np.array(caps)[:, None]  # [3, 1]
        self._scores = np.zeros((3, num_envs))
        self._lengths = np.zeros(num_envs, np.int64)
        self._actions, self._rooms = action_counter, VisitedRooms(num_envs)

    def step(
        self,
        a_t: NDArray[Any],
        rewards: NDArray[Any],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        active: NDArray[np.bool_],
        rooms: NDArray[Any] | None = None,
    ) -> list[FinishedEpisode]:
        """Takes in one vector step and returns the episodes that it ended.

        a_t is [N] int64 or [N, A] float32; all other arguments are [N]. `rooms`: to which the step led.
        Rows with `active` False took no step of an episode (an autoreset, or nothing is played there).
        """
        self._lengths += active
        self._actions.add(a_t, active)
        if rooms is not None:
            self._rooms.see(rooms, active)
        self._scores += np.where(active & (self._lengths <= self._caps), rewards, 0.0)
        ended = np.flatnonzero(active & (terminated | truncated))
        finished = [self._finished(int(row)) for row in ended]
        self._scores[:, ended] = 0.0
        self._lengths[ended] = 0
        return finished

    def state_dict(self) -> dict[str, Any]:
        """What running episodes have brought so far."""
        return {
            "scores": self._scores.copy(),
            "lengths": self._lengths.copy(),
            "actions": self._actions.state_dict(),
            "rooms": self._rooms.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""
        self._scores[...], self._lengths[...] = state["scores"], state["lengths"]
        self._actions.load_state_dict(state["actions"])
        self._rooms.load_state_dict(state["rooms"])

    def _finished(self, row: int) -> FinishedEpisode:
        score_5min, score_30min, score_saber = self._scores[:, row].tolist()
        length, counts, rooms = int(self._lengths[row]), self._actions.take(row), self._rooms.take(row)
        return FinishedEpisode(row, score_5min, score_30min, score_saber, length, counts, rooms)


def tracker_of(description: EnvDescription, num_envs: int) -> EpisodeTracker:
    """A tracker of `num_envs` environments of this kind."""
    fps, frames_per_step = description.frames_per_second, description.frames_per_step
    cap_5min, cap_30min = (steps_of_minutes(minutes, fps, frames_per_step) for minutes in (5, 30))
    bounds = description.action_low, description.action_high
    counter = ActionCounter(num_envs, description.num_actions, *bounds)
    return EpisodeTracker(num_envs, cap_5min, cap_30min, counter)
