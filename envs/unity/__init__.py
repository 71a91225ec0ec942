"""The family of Unity's builds that speak ML-Agents' first protocol: "unity:3dball", "unity:/path/to/build".

A build has B bodies (3DBall: 12), and each is an environment: N environments take N / B players, rounded up.
Bodies that nobody plays take action 0. What the protocol cannot do shows here:

* Nothing is seeded, so that no episode can be repeated or filmed.
* A body begins anew by itself in the step that ends its episode. The frame that comes then is the next
  episode's first; of the one that ended the last frame seen stands for the last. Where the caller does not
  reset a row, the next episode's first step is played unseen, with action 0: the vector step that Gymnasium's
  NEXT_STEP spends on an autoreset moves every body.
* No body can be restarted alone. One that --max-episode-steps stopped goes on from where it stands, and so
  may soon come to a limit of its own; a reset of all rows of a player restarts its scene.
* Why an episode ended is not said: it is a termination, but a truncation where the whole scene's time is up.
  An episode that began later than its scene counts as interrupted then: chance decided its length.

A player that hangs or dies is killed and started again, and the episodes of its rows are truncated.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from envs.config import EnvConfig, EnvDescription, EnvError, EnvFailure, description_from_spaces
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.gym import constructor_arguments
from envs.playback import Frames, Playback
from envs.registry import Family
from envs.unity.builds import PREFIX, SHIPPED, find_build
from envs.unity.player import Bodies, Brain, Camera, Player, TimeLimits

__all__ = ["FAMILY", "UnityVector"]

log = logging.getLogger(__name__)
_FAILURES = 5
"""Of a player, one after the other, after which an actor gives up."""
_KNOWN = {
    "gridworld": Brain("GridBrain", 6, 4, False, (Camera(32, 32, True),)),
    "3dball": Brain("Ball3DBrain", 8, 2, False, ()),
}
"""What the shipped builds announce, so that a learner needs neither."""


@dataclass(frozen=True)
class Arguments:
    """--env-args: what is ours, and the scene's own reset parameters."""

    brain: str  # "": the only one
    actions: int  # that the bodies obey, where the brain announces fewer; 0: as announced
    camera: bool  # whether pictures are observed instead of numbers
    scene: Mapping[str, float]

    @classmethod
    def of(cls, config: EnvConfig) -> "Arguments":
        """Raises EnvError."""
        given = constructor_arguments(config)
        brain, actions, camera = given.pop("brain", ""), given.pop("actions", 0), given.pop("camera", False)
        if not (
            isinstance(brain, str) and type(actions) is int and actions >= 0 and isinstance(camera, bool)
        ):
            raise EnvError(
                '--env-args of Unity: "brain" is a name, "actions" a number, "camera" true or false.'
            )
        if wrong := [name for name, value in given.items() if type(value) not in (int, float)]:
            raise EnvError(f"A scene's parameter must be a number, which {', '.join(wrong)} is not.")
        return cls(brain, actions, camera, given)

    def choose(self, brains: Mapping[str, Brain], game: str) -> Brain:
        """The brain that is played. Raises EnvError."""
        names = [self.brain] if self.brain else list(brains)
        if len(names) != 1 or names[0] not in brains:
            known = ", ".join(brains) or "none"
            raise EnvError(f'{game} has the brains {known}: choose one with --env-args \'{{"brain": "…"}}\'.')
        return brains[names[0]]


class UnityVector(SeededVectorEnv):
    """N bodies of as many players as these take: frames float32 [N, numbers], or uint8 [N, h, w(, 3)].

    Raises:
        EnvError: there is no such build, or it knows no such argument.
    """

    def __init__(self, config: EnvConfig, seeds: Sequence[int], limits: TimeLimits | None = None) -> None:
        arguments, program = Arguments.of(config), find_build(config.game)
        first = _Scene(program, arguments, config, limits or TimeLimits())
        frames, actions = _spaces(first.brain, arguments, config.game)
        super().__init__(frames, actions, seeds)
        more = -(-self.num_envs // first.bodies) - 1
        self._scenes = [first, *(_Scene(program, arguments, config, first.limits) for _ in range(more))]
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
        died, over = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        age, failed = np.zeros(self.num_envs, np.int64), np.zeros(self.num_envs, np.bool_)
        idle = np.where(_column(self._ended, actions), 0, actions)
        for scene, rows in zip(self._scenes, self._rows, strict=True):
            frames, rewards[rows], died[rows], over[rows] = scene.step(idle[rows])
            self._stands[rows], age[rows], failed[rows] = frames, scene.age, scene.failed
        began = self._ended
        self._steps = np.where(began, 0, self._steps + 1)
        terminated = died & ~began
        stopped = (self._steps == self._max_steps) & (self._max_steps > 0)
        truncated = (over | stopped) & ~died & ~began
        rewards[began] = 0.0
        self._ended = terminated | truncated
        seen = ~died | began  # where a body died, the frame is already the next episode's
        self._shown[seen] = self._stands[seen]
        self._begin_anew(began & over)
        interrupted = truncated & ~stopped & (failed | (over & (self._steps < age)))
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


class _Scene:
    """One player with its bodies, started again where it fails."""

    def __init__(self, program: Path, arguments: Arguments, config: EnvConfig, limits: TimeLimits) -> None:
        self.limits = limits
        self._program, self._arguments, self._game = program, arguments, config.game
        self._player: Player | None = None
        self._failures = 0
        self.wants_reset = True
        self.age = 0  # steps since the scene began
        self.failed = False  # in the last step
        self.reset()

    def reset(self) -> Frames:
        """Starts the scene anew, and a player where none runs; returns the frames of all bodies."""
        while True:
            try:
                if self._player is None:
                    self._player = self._started()
                self._states = self._player.reset(self._arguments.scene)
            except OSError as failure:
                self._give_up(failure)
                continue
            self.wants_reset, self.age = False, 0
            self.bodies = len(self._own.rewards)
            return self._frames()

    def step(self, actions: npt.NDArray[Any]) -> tuple[Frames, npt.NDArray[np.float64], Flags, Flags]:
        """Actions of the first n bodies; returns their frames, rewards, who died, and whose time is over."""
        count, self.failed = len(actions), False
        nothing, none = np.zeros(count), np.zeros(count, np.bool_)
        if self.wants_reset:
            return self.reset()[:count], nothing, none, none
        assert self._player is not None
        try:
            self._states, over = self._player.step(self._actions(actions))
        except OSError as failure:
            frames, self.failed = self._frames()[:count], True
            self._give_up(failure)
            return frames, nothing, none, ~none
        self._failures, self.wants_reset, self.age = 0, over, self.age + 1
        own = self._own
        return self._frames()[:count], own.rewards[:count], own.ended[:count], np.full(count, over)

    def close(self) -> None:
        """Ends the player."""
        if self._player is not None:
            self._player.close()
            self._player = None

    @property
    def _own(self) -> Bodies:
        return self._states[self.brain.name]

    def _started(self) -> Player:
        player = Player(self._program, self.limits)
        if wrong := self._arguments.scene.keys() - player.reset_parameters.keys():
            player.close()
            known = ", ".join(player.reset_parameters) or "none"
            raise EnvError(f"{self._game} has no parameter {', '.join(sorted(wrong))}; it knows {known}.")
        try:
            self.brain = self._arguments.choose(player.brains, self._game)
        except EnvError:
            player.close()
            raise
        self._brains = player.brains
        return player

    def _actions(self, actions: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Those of every body: 0 for bodies and brains that nobody plays."""
        taken = {
            name: _nothing(self._brains[name], len(state.rewards)) for name, state in self._states.items()
        }
        taken[self.brain.name][: len(actions)] = actions
        return taken

    def _frames(self) -> Frames:
        own = self._own
        if not self._arguments.camera:
            return own.numbers
        assert own.pictures is not None
        return own.pictures

    def _give_up(self, failure: OSError) -> None:
        """Ends the player. Raises EnvFailure after too many in a row."""
        self.close()
        self._failures += 1
        self.wants_reset = True
        if self._failures >= _FAILURES:
            raise EnvFailure(f"The player of {self._game} failed {_FAILURES} times in a row: it {failure}.")
        log.warning("The player of %s %s; it is started again.", self._game, failure)


def _nothing(brain: Brain, bodies: int) -> npt.NDArray[np.float64]:
    return np.zeros((bodies, brain.actions) if brain.continuous else bodies)


def _column(flags: Flags, actions: Actions) -> Flags:
    return flags.reshape(-1, *(1,) * (actions.ndim - 1))


def _spaces(brain: Brain, arguments: Arguments, game: str) -> tuple[Box, Discrete | Box]:
    if arguments.camera and not brain.cameras:
        raise EnvError(f"The bodies of {game} have no camera.")
    frames = (
        _space_of(brain.cameras[0])
        if arguments.camera
        else Box(-np.inf, np.inf, (brain.numbers,), np.float32)
    )
    if brain.continuous:
        return frames, Box(-1.0, 1.0, (brain.actions,), np.float32)
    return frames, Discrete(arguments.actions or brain.actions)


def _space_of(camera: Camera) -> Box:
    shape = camera.height, camera.width
    return Box(0, 255, shape if camera.grey else (*shape, 3), np.uint8)


@cache
def _announced(program: Path) -> Mapping[str, Brain]:
    """The brains of a build, which is started to be asked. Raises EnvFailure."""
    try:
        player = Player(program, TimeLimits())
    except OSError as failure:
        raise EnvFailure(f"The Unity player {program.name} {failure}.") from failure
    player.close()
    return player.brains


def _describe(config: EnvConfig) -> EnvDescription:
    arguments, name = Arguments.of(config), config.game.removeprefix(PREFIX)
    known = {_KNOWN[name].name: _KNOWN[name]} if name in _KNOWN else _announced(find_build(config.game))
    return description_from_spaces(*_spaces(arguments.choose(known, config.game), arguments, config.game))


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
