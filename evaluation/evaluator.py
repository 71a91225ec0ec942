"""Evaluation: a fixed list of episodes, each with its own seeds, played in a vector of environments.

The list is fixed before the first step, because the first hundred episodes to end would favour short ones. An
episode's environment, its noise and the batch size of forward passes do not depend on how many episodes are
played at once; nor does its score.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from acting.episodes import FinishedEpisode, tracker_of
from agents.on_policy.rollouts import LONG_EPISODE
from envs.config import EnvConfig
from envs.playback import Action, Frames
from envs.registry import describe_env, make_env
from evaluation.policies import Policy, StackedPolicy
from evaluation.result import Evaluation

log = logging.getLogger(__name__)


class EpisodeSeeds(NamedTuple):
    """The randomness of one episode; both lie in [0, 2^31)."""

    environment: int
    policy: int


class Observer(Protocol):
    """Called at every step of every episode."""

    def start(self, episode: int, seed: int) -> None:
        """Episode number `episode` starts in an environment with this seed."""

    def step(self, episode: int, action: Action, frame: Frames) -> None:
        """`action` is taken in that episode, where it shows `frame`."""


class Recorder(Observer, Protocol):
    """Makes a file of one episode after the evaluation."""

    def write(self, evaluation: Evaluation) -> int:
        """Write it, and return the episode's number."""


def episode_seeds(seed: int, episode: int) -> EpisodeSeeds:
    """Seeds of episode number `episode` of an evaluation under `seed`."""
    words = np.random.SeedSequence(seed, spawn_key=(episode,)).generate_state(2) >> 1
    return EpisodeSeeds(*words.tolist())


@contextmanager
def progress_bar(episodes: int) -> Iterator[Callable[[FinishedEpisode], None]]:
    """A bar on stderr of finished episodes and their mean score; gives `evaluate`'s `on_progress`."""
    scores: list[float] = []
    with tqdm(total=episodes, unit="episode", dynamic_ncols=True, disable=None) as bar:

        def show(episode: FinishedEpisode) -> None:
            scores.append(episode.score_saber)
            bar.set_postfix(mean=f"{np.mean(scores):,.1f}", refresh=False)
            bar.update()

        yield show


def evaluate(
    policy: Policy,
    env_config: EnvConfig,
    episodes: int,
    seed: int,
    width: int,
    on_progress: Callable[[FinishedEpisode], None] | None = None,
    observer: Observer | None = None,
) -> Evaluation:
    """Play `episodes` episodes, `width` of them at a time, and those that fill a table of several seats.

    Args:
        seed: all randomness comes from it.
        width: number of environments; changes the time it takes, not the result.
        on_progress: called with every episode as it ends.

    Raises:
        EnvError: the environment cannot be made.
    """
    env_config = env_config.of_whole_games()
    whole_tables = episodes + -episodes % describe_env(env_config).seats
    seeds = [episode_seeds(seed, episode) for episode in range(whole_tables)]
    play = _VectorPlay(policy, env_config, seeds, width, observer)
    try:
        while play.playing:
            for episode in play.step():
                if on_progress is not None:
                    on_progress(episode)
            if play.steps_without_end == LONG_EPISODE:
                log.warning(
                    "No episode has ended for %s steps; --max-episode-steps sets an end.", f"{LONG_EPISODE:,}"
                )
    finally:
        play.close()
    results = [play.results[episode] for episode in range(episodes)]
    return Evaluation(
        env_config=env_config,
        seeds=tuple(each.environment for each in seeds[:episodes]),
        scores_5min=tuple(each.score_5min for each in results),
        scores_30min=tuple(each.score_30min for each in results),
        scores=tuple(each.score_saber for each in results),
        lengths=tuple(each.length for each in results),
        rooms=tuple(tuple(each.rooms) for each in results),
        seats=play.seats,
    )


class _VectorPlay:
    """N environments, whole tables; each plays the next episode of the list when its last one has ended."""

    def __init__(
        self,
        policy: Policy,
        env_config: EnvConfig,
        seeds: list[EpisodeSeeds],
        width: int,
        observer: Observer | None,
    ) -> None:
        """`seeds`: of each episode, as many as fill tables."""
        description = describe_env(env_config)
        seats = description.seats
        rows = min(max(width - width % seats, seats), len(seeds))
        self._seeds, self._observer = seeds, observer
        self._policy = StackedPolicy(policy, rows, description)
        self._tracker = tracker_of(description, rows)
        self._env = make_env(env_config, [each.environment for each in seeds[:rows]])
        self.seats = description.seats
        self._episodes = np.arange(rows)  # [N] the episode of each row; -1 for none
        self._started = rows
        self.steps_without_end = 0  # vector steps since an episode ended
        self._first = np.ones(rows, np.bool_)
        self.results: dict[int, FinishedEpisode] = {}
        self._frames, _ = self._env.reset()
        self._start(self._first)

    @property
    def playing(self) -> bool:
        """Whether any episode has not ended."""
        return bool((self._episodes >= 0).any())

    def step(self) -> list[FinishedEpisode]:
        """One vector step; returns the episodes that it ended."""
        a_t = self._policy.act(self._frames, self._first)
        active = self._episodes >= 0
        self._notify(a_t, active)
        self._frames, rewards, terminated, truncated, infos = self._env.step(a_t)
        finished = self._tracker.step(a_t, rewards, terminated, truncated, active, infos)
        self._first = np.zeros_like(active)
        self.steps_without_end = 0 if finished else self.steps_without_end + 1
        if finished:
            interrupted = infos.get("interrupted", np.zeros_like(active))
            finished = self._start_next(finished, interrupted)
        return finished

    def close(self) -> None:
        """Close the environments."""
        self._env.close()

    def _start_next(
        self, finished: list[FinishedEpisode], interrupted: NDArray[np.bool_]
    ) -> list[FinishedEpisode]:
        """Start the next episode in the rows [N] of the finished ones, the same where it was interrupted.

        Returns the others, whose results are kept.
        """
        whole = [result for result in finished if not interrupted[result.environment]]
        self._first = interrupted & (self._episodes >= 0)
        for result in whole:
            row = result.environment
            self.results[int(self._episodes[row])] = result
            self._episodes[row] = self._started if self._started < len(self._seeds) else -1
            self._first[row] = self._started < len(self._seeds)
            self._started += int(self._first[row])
        if self._first.any():
            seeds = [self._seeds[episode].environment for episode in self._episodes[self._first]]
            self._frames, _ = self._env.reset(seed=seeds, options={"reset_mask": self._first})
            self._start(self._first)
        return whole

    def _start(self, rows: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(rows).tolist():
            episode = int(self._episodes[row])
            self._policy.start(row, self._seeds[episode].policy)
            if self._observer is not None:
                self._observer.start(episode, self._seeds[episode].environment)

    def _notify(self, a_t: NDArray[Any], active: NDArray[np.bool_]) -> None:
        if self._observer is None:
            return
        for row in np.flatnonzero(active).tolist():
            action = int(a_t[row]) if a_t.ndim == 1 else a_t[row].copy()
            self._observer.step(int(self._episodes[row]), action, self._frames[row])
