"""One player with its bodies, started again where it fails."""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from envs.config import EnvError, EnvFailure
from envs.contract import Flags
from envs.playback import Frames
from envs.unity.arguments import Arguments, frames_of, spaces_of
from envs.unity.bodies import Bodies, PlayerFailed, TimeLimits
from envs.unity.builds import find_build
from envs.unity.player import Player

log = logging.getLogger(__name__)
_FAILURES = 5
"""Of a player, one after the other, after which an actor gives up."""


class Moved(NamedTuple):
    """The first n bodies of a scene after a step."""

    frames: Frames  # as they stand: those whose episode has ended are in their next one
    rewards: npt.NDArray[np.float64]
    ended: Flags
    truncated: Flags  # those that a limit of steps of their own ended
    last: Frames | None  # of ended episodes, where they are known
    is_over: bool  # all of them: the time of the whole scene is up, or its player has failed


class Scene:
    """The bodies of one player.

    Args:
        game: "unity:…".
        arguments: of its --env-args.
        limits: on the player's time.
        seed: of the scene's chance, where its protocol has one.

    Raises:
        EnvError: there is no such build, or it knows no such argument.
    """

    def __init__(self, game: str, arguments: Arguments, limits: TimeLimits, seed: int) -> None:
        self.limits = limits
        self._program, self._arguments, self._game, self._seed = find_build(game), arguments, game, seed
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
                bodies = self._player.conversation.reset(self._arguments.scene)
                self._own: Bodies = self._bodies_of_the_brain(bodies)
            except OSError as failure:
                self._give_up(failure)
                continue
            self.wants_reset, self.age = False, 0
            self.bodies = len(self._own.rewards)
            return self._frames()

    def step(self, actions: npt.NDArray[Any]) -> Moved:
        """Takes the actions of the first n bodies."""
        count, self.failed = len(actions), False
        nothing, none = np.zeros(count), np.zeros(count, np.bool_)
        if self.wants_reset:
            return Moved(self.reset()[:count], nothing, none, none, None, False)
        assert self._player is not None
        try:
            bodies, over = self._player.conversation.step(self.brain.name, actions)
        except OSError as failure:
            frames, self.failed = self._frames()[:count], True
            self._give_up(failure)
            return Moved(frames, nothing, none, none, None, True)
        self._own, self._failures, self.wants_reset, self.age = bodies, 0, over, self.age + 1
        last = None if bodies.last is None else frames_of(bodies.last, self._arguments)[:count]
        return Moved(
            self._frames()[:count],
            bodies.rewards[:count],
            bodies.ended[:count],
            bodies.truncated[:count],
            last,
            over,
        )

    def close(self) -> None:
        """Ends the player."""
        if self._player is not None:
            self._player.close()
            self._player = None

    def _started(self) -> Player:
        player = Player(self._program, self.limits, self._seed)
        try:
            self._check(player.conversation.reset_parameters)
            self.brain = self._arguments.choose(player.conversation.brains, self._game)
            spaces_of(self.brain, self._arguments, self._game)
        except EnvError:
            player.close()
            raise
        return player

    def _check(self, known: Mapping[str, float] | None) -> None:
        """Raises EnvError where --env-args has a parameter that the scene does not know."""
        if known is not None and (wrong := self._arguments.scene.keys() - known.keys()):
            names = ", ".join(known) or "none"
            raise EnvError(f"{self._game} has no parameter {', '.join(sorted(wrong))}; it knows {names}.")

    def _bodies_of_the_brain(self, bodies: Mapping[str, Bodies]) -> Bodies:
        if self.brain.name not in bodies:
            raise PlayerFailed(f"begins without a body of {self.brain.name}")
        return bodies[self.brain.name]

    def _frames(self) -> Frames:
        return frames_of(self._own, self._arguments)

    def _give_up(self, failure: OSError) -> None:
        """Ends the player. Raises EnvFailure after too many in a row."""
        self.close()
        self._failures += 1
        self.wants_reset = True
        if self._failures >= _FAILURES:
            raise EnvFailure(f"The player of {self._game} failed {_FAILURES} times in a row: it {failure}.")
        log.warning("The player of %s %s; it is started again.", self._game, failure)
