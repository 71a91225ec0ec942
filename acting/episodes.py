"""Running episodes: scores at SABER's three times of play (arXiv 1908.04683), actions, rooms visited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.config import EnvDescription
from envs.saving import Saved

BINS = 20
"""Equal parts of the range of each component of a continuous action."""


class FinishedEpisode(NamedTuple):
    """What is reported of an episode."""

    environment: int  # row in the vector of environments; with --seat-runs, in that of all seats together
    score_5min: float  # raw score within the first 5 minutes of play
    score_30min: float
    score_saber: float  # raw score of the whole episode
    length: int  # agent steps
    action_counts: list[list[int]]  # see ActionCounter
    rooms: list[int]  # visited, in ascending order; empty where the game has none


class ActionCounter(Saved):
    """Histograms of the actions of the running episodes of N environments.

    Discrete actions have one histogram, with a count per action. A continuous action has one for each of its
    components: the counts of `BINS` equal parts of the range from low to high.
    """

    SAVED = ("_counts",)

    def __init__(
        self,
        num_envs: int,
        num_actions: int | None,
        action_low: Sequence[float] | None,
        action_high: Sequence[float] | None,
    ) -> None:
        """Either the number of discrete actions or the bounds [A] of continuous ones."""
        self._bins = BINS if num_actions is None else num_actions
        self._low = np.array([0] if action_low is None else action_low, np.float64)
        high = np.array([self._bins] if action_high is None else action_high, np.float64)
        self._width = np.where(high > self._low, high - self._low, 1.0) / self._bins  # 1: one value alone
        self._components = np.arange(len(self._low))
        self._counts = np.zeros((num_envs, len(self._low), self._bins), np.int64)

    def add(self, a_t: NDArray[Any], active: NDArray[np.bool_]) -> None:
        """Count a_t, [N] int64 or [N, A] float32, of the rows where `active` [N]."""
        rows = np.flatnonzero(active)[:, None]
        actions = a_t.reshape(len(a_t), -1)[rows[:, 0]]
        bins = ((actions - self._low) / self._width).astype(np.int64)  # [M, A]
        self._counts[rows, self._components, np.minimum(bins, self._bins - 1)] += 1

    def take(self, row: int) -> list[list[int]]:
        """The histograms of the finished episode in `row`; the next one's begin at 0."""
        counts: list[list[int]] = self._counts[row].tolist()
        self._counts[row] = 0
        return counts


class EpisodeTracker(Saved):
    """Sums the raw rewards of N environments, counts their actions, and finds which episodes ended.

    A cap of None counts the whole episode.
    """

    SAVED = "_scores", "_lengths", "_actions"

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
        self._numbers = np.ones(num_envs, np.int64)  # of the running episodes, since this process began
        self._actions = action_counter
        self._rooms: list[set[int]] = [set() for _ in range(num_envs)]
        self.environments: Sequence[int] = range(num_envs)  # `environment` of each row's episodes

    def step(
        self,
        a_t: NDArray[Any],
        rewards: NDArray[Any],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        active: NDArray[np.bool_],
        infos: Mapping[str, Any],
    ) -> list[FinishedEpisode]:
        """Add one vector step.

        Args:
            a_t: [N] int64 or [N, A] float32; all other arguments are [N].
            active: False where the row took no step of an episode (an autoreset, or nothing is played there).
            infos: of the environments: "room" that the step led to, in games that name it; "life_lost" where
                an episode ends and its game goes on: scores are of whole games (envs/atari/lives.py).

        Returns:
            The episodes that ended with this step.
        """
        self._lengths += active
        self._actions.add(a_t, active)
        if "room" in infos:
            for row in np.flatnonzero(active).tolist():
                self._rooms[row].add(int(infos["room"][row]))
        self._scores += np.where(active & (self._lengths <= self._caps), rewards, 0.0)
        over = active & (terminated | truncated)
        ended = np.flatnonzero(over & ~infos["life_lost"] if "life_lost" in infos else over)
        finished = list(map(self._finished, ended.tolist()))
        self._scores[:, ended] = 0.0
        self._lengths[ended] = 0
        self._numbers[ended] += 1
        return finished

    def where(self) -> str:
        """Step and episode of the rows, to end a sentence: "after step 20 of episode 3"; equal ones once."""
        rows = dict.fromkeys(zip(self._lengths.tolist(), self._numbers.tolist(), strict=True))
        return " or ".join(f"after step {length} of episode {number}" for length, number in rows)

    def _finished(self, row: int) -> FinishedEpisode:
        scores, counts = self._scores[:, row].tolist(), self._actions.take(row)
        rooms, self._rooms[row] = sorted(self._rooms[row]), set()
        environment, length = self.environments[row], int(self._lengths[row])
        return FinishedEpisode(environment, scores[0], scores[1], scores[2], length, counts, rooms)

    def state_dict(self) -> dict[str, Any]:
        """Scores, lengths, actions and rooms of the running episodes."""
        rooms = [sorted(rooms) for rooms in self._rooms]
        return {**(super().state_dict() or {}), "rooms": {"rooms": rooms}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        super().load_state_dict(state)
        self._rooms = [set(rooms) for rooms in state["rooms"]["rooms"]]


def tracker_of(description: EnvDescription, num_envs: int) -> EpisodeTracker:
    """A tracker of `num_envs` environments of this kind."""
    actions = description.num_actions, description.action_low, description.action_high
    counter = ActionCounter(num_envs, *actions)
    return EpisodeTracker(num_envs, description.steps_in(5), description.steps_in(30), counter)
