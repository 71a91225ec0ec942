"""The family of Unity's builds that speak a protocol of ML-Agents: "unity:3dball", "unity:/path/to/build".

A build has B bodies (3DBall: 12), and each is an environment: N environments take N / B players, rounded up.
Bodies that nobody plays take action 0. What the protocols cannot do shows here:

* No episode can be repeated or filmed: the first protocol has no seed, and the present one's is of the scene.
* A body begins anew by itself in the step that ends its episode. The frame that comes then is the next
  episode's first; in the first protocol the last frame seen of the one that ended stands for its last. Where
  the caller does not reset a row, the next episode's first step is played unseen, with action 0: the vector
  step that Gymnasium's NEXT_STEP spends on an autoreset moves every body.
* No body can be restarted alone. One that --max-episode-steps stopped goes on from where it stands, and so
  may soon come to a limit of its own; a reset of all rows of a player restarts its scene.
* Why an episode ended the first protocol does not say: it is a termination, but a truncation where the whole
  scene's time is up. An episode that began later than its scene counts as interrupted then: chance decided
  its length. The present protocol says whether a body's own limit of steps ended it.

A player that hangs or dies is killed and started again, and the episodes of its rows are truncated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from envs.config import EnvConfig, EnvDescription, EnvError, EnvFailure, description_from_spaces
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Frames, Playback
from envs.registry import Family
from envs.unity.arguments import Arguments, spaces_of
from envs.unity.bodies import Brain, Camera, TimeLimits
from envs.unity.builds import PREFIX, SHIPPED, find_build
from envs.unity.player import Player
from envs.unity.scene import Scene

__all__ = ["FAMILY", "UnityVector"]

_KNOWN = {
    "gridworld": Brain("GridBrain", 6, 4, False, (Camera(32, 32, 1),)),
    "3dball": Brain("Ball3DBrain", 8, 2, False, ()),
}
"""What the shipped builds announce, so that a learner needs neither."""


class UnityVector(SeededVectorEnv):
    """N bodies of as many players as these take: frames float32 [N, numbers], or uint8 [N, h, w(, 3)].

    Raises:
        EnvError: there is no such build, or it knows no such argument.
    """

    def __init__(self, config: EnvConfig, seeds: Sequence[int], limits: TimeLimits | None = None) -> None:
        arguments, limits = Arguments.of(config), limits or TimeLimits()
        first = Scene(config.game, arguments, limits, seeds[0])
        frames, actions = spaces_of(first.brain, arguments, config.game)
        super().__init__(frames, actions, seeds)
        self.masked = arguments.masks
        starts = range(first.bodies, self.num_envs, first.bodies)
        self._scenes = [first, *(Scene(config.game, arguments, limits, seeds[start]) for start in starts)]
        self._rows = [
            slice(begin, min(begin + first.bodies, self.num_envs))
            for begin in range(0, self.num_envs, first.bodies)
        ]
        self._max_steps = config.max_episode_steps
        self._steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)
        self._shown: Frames = np.zeros((self.num_envs, *frames.shape), frames.dtype)  # returned last
        self._stands: Frames = self._shown.copy()  # of the scenes as they stand

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        for scene, rows in zip(self._scenes, self._rows, strict=True):
            if mask[rows].all() or (scene.wants_reset and mask[rows].any()):
                self._stands[rows] = scene.reset()[: rows.stop - rows.start]
        self._shown[mask] = self._stands[mask]
        self._steps[mask], self._ended[mask] = 0, False
        return self._shown.copy(), {}

    def _advance(self, actions: Actions) -> Steps:
        rewards = np.zeros(self.num_envs)
        ended, cut, over, failed = np.zeros((4, self.num_envs), np.bool_)
        age, last = np.zeros(self.num_envs, np.int64), self._shown.copy()
        idle = np.where(_column(self._ended, actions), 0, actions)
        for scene, rows in zip(self._scenes, self._rows, strict=True):
            moved = scene.step(idle[rows])
            self._stands[rows], rewards[rows], over[rows] = moved.frames, moved.rewards, moved.is_over
            ended[rows], cut[rows] = moved.ended, moved.truncated
            age[rows], failed[rows] = scene.age, scene.failed
            if moved.last is not None:
                last[rows] = moved.last
        began = self._ended
        self._steps = np.where(began, 0, self._steps + 1)
        terminated = ended & ~cut & ~began
        stopped = (self._steps == self._max_steps) & (self._max_steps > 0)
        truncated = (cut | over | stopped) & ~terminated & ~began
        rewards[began] = 0.0
        self._ended = terminated | truncated
        self._shown = np.where(_column(ended & ~began, self._stands), last, self._stands)
        self._begin_anew(began & over)
        interrupted = truncated & ~cut & ~stopped & (failed | (over & (self._steps < age)))
        return self._shown.copy(), rewards, terminated, truncated, {"interrupted": interrupted}

    def _begin_anew(self, cut_off: Flags) -> None:
        """Start the scenes of rows `cut_off` now: episodes that began in this step no flag could end."""
        for scene, rows in zip(self._scenes, self._rows, strict=True):
            if cut_off[rows].any():
                self._stands[rows] = scene.reset()[: rows.stop - rows.start]
        self._shown[cut_off] = self._stands[cut_off]

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the players."""
        for scene in self._scenes:
            scene.close()


def _column(flags: Flags, like: npt.NDArray[Any]) -> Flags:
    """[N] as [N, 1, …], with the dimensions of `like`."""
    return flags.reshape(-1, *(1,) * (like.ndim - 1))


@cache
def _announced(program: Path) -> Mapping[str, Brain]:
    """The brains of a build, which is started to be asked. Raises EnvFailure."""
    try:
        player = Player(program, TimeLimits())
    except OSError as failure:
        raise EnvFailure(f"The Unity player {program.name} {failure}.") from failure
    player.close()
    return player.conversation.brains


def _describe(config: EnvConfig) -> EnvDescription:
    arguments, name = Arguments.of(config), config.game.removeprefix(PREFIX)
    known = {_KNOWN[name].name: _KNOWN[name]} if name in _KNOWN else _announced(find_build(config.game))
    brain = arguments.choose(known, config.game)
    described = description_from_spaces(*spaces_of(brain, arguments, config.game))
    return replace(described, masked=arguments.masks)


def _canonical_name(game: str) -> str | None:
    return game if game.startswith(PREFIX) else None


def _playback(config: EnvConfig, seed: int) -> Playback:
    raise EnvError(
        f"{config.game} cannot be filmed or replayed, since its player has no seed and no picture: "
        "--record NAME.png draws the numbers that it shows."
    )


FAMILY = Family(
    _canonical_name, lambda: [PREFIX + name for name in SHIPPED], _describe, UnityVector, _playback
)
