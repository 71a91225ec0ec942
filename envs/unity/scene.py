"""One player with its bodies, started again where it fails, and the part that one brain has in it."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from envs.config import EnvConfig, EnvError, EnvFailure
from envs.contract import Flags
from envs.playback import Frames
from envs.unity.arguments import Arguments, frames_of, spaces_of
from envs.unity.builds import find_build
from envs.unity.protocols.bodies import Bodies, Brain, PlayerFailed, PlayerLimits
from envs.unity.protocols.player import UnityPlayer

log = logging.getLogger(__name__)
_FAILURES = 5
"""Failures of a player in a row after which an actor gives up."""


class BrainStep(NamedTuple):
    """The first n bodies of a brain after a step."""

    frames: Frames  # [n, *frame] as they stand: those whose episode has ended are in their next one
    rewards: npt.NDArray[np.float64]  # [n]
    ended: Flags  # [n]
    truncated: Flags  # [n] those that a limit of steps of their own ended
    last: Frames | None  # [n, *frame] last frames of ended episodes, where they are known
    is_over: bool  # all of them: the time of the whole scene is up, or its player has failed
    failed: bool  # the latter
    age: int  # steps since the scene began


class UnityScene:
    """The bodies of one player. Raises EnvError where there is no such build, or no such argument of it."""

    def __init__(
        self, config: EnvConfig, parts: Sequence[Arguments], limits: PlayerLimits, seed: int
    ) -> None:
        """Start the player.

        Args:
            config: That of the first brain where several are played.
            parts: Which bodies are played, and what they see.
            seed: Of the scene's chance, where its protocol has one.
        """
        self.game, self._parts, self._limits, self._seed = config.game, parts, limits, seed
        self._program = find_build(config.game)
        self._player: UnityPlayer | None = None
        self._failures = self._age = 0
        self._wants_reset = True
        self.brains: list[Brain] = []
        self.bodies: dict[str, Bodies] = {}
        self._counts: dict[str, int] = {}  # of bodies by brain
        self.reset()

    def reset(self) -> None:
        """Starts the scene anew, and a player where none runs."""
        while True:
            try:
                if self._player is None:
                    self._player = self._started()
                self.bodies = self._player.conversation.reset(self._parts[0].scene)
                self._check_bodies()
            except OSError as failure:
                self._give_up(failure)
                continue
            self._wants_reset, self._age = False, 0
            return

    def _check_bodies(self) -> None:
        """Raise PlayerFailed where a brain has fewer bodies than at the first start."""
        for brain in self.brains:
            count = len(self.bodies[brain.name].rewards) if brain.name in self.bodies else 0
            if count < self._counts.setdefault(brain.name, max(1, count)):
                raise PlayerFailed(f"begins with {count} bodies of {brain.name}")

    def begin_anew(self) -> None:
        """Starts the scene anew where it is over."""
        if self._wants_reset:
            self.reset()

    def frames(self, part: int) -> Frames:
        """The frames of all bodies of a part."""
        return frames_of(self.bodies[self.brains[part].name], self._parts[part])

    def step(self, actions: Sequence[npt.NDArray[Any]]) -> list[BrainStep]:
        """Takes the actions of the first n bodies of each part; a step of a scene that is over begins it."""
        if self._wants_reset:
            self.reset()
            return [self._step_without_player(part, len(chosen)) for part, chosen in enumerate(actions)]
        assert self._player is not None
        taken = {brain.name: chosen for brain, chosen in zip(self.brains, actions, strict=True)}
        try:
            self.bodies, over = self._player.conversation.step(taken)
        except OSError as failure:
            self._give_up(failure)
            return [
                self._step_without_player(part, len(chosen), failed=True)
                for part, chosen in enumerate(actions)
            ]
        self._failures, self._wants_reset, self._age = 0, over, self._age + 1
        return [self._brain_step(part, len(chosen), over) for part, chosen in enumerate(actions)]

    def close(self) -> None:
        """Ends the player."""
        if self._player is not None:
            self._player.close()
            self._player = None

    def _step_without_player(self, part: int, count: int, failed: bool = False) -> BrainStep:
        none = np.zeros(count, np.bool_)
        frames = self.frames(part)[:count]
        return BrainStep(frames, np.zeros(count), none, none, None, failed, failed, self._age)

    def _brain_step(self, part: int, count: int, over: bool) -> BrainStep:
        bodies = self.bodies[self.brains[part].name]
        last = None if bodies.last is None else frames_of(bodies.last, self._parts[part])[:count]
        frames, rewards = self.frames(part)[:count], bodies.rewards[:count]
        ended, truncated = bodies.ended[:count], bodies.truncated[:count]
        return BrainStep(frames, rewards, ended, truncated, last, over, False, self._age)

    def _started(self) -> UnityPlayer:
        player = UnityPlayer(self._program, self._limits, self._seed)
        talk = player.conversation
        try:
            self._check(talk.reset_parameters)
            self.brains = [part.choose(talk.brains, self.game) for part in self._parts]
            for brain, part in zip(self.brains, self._parts, strict=True):
                spaces_of(brain, part, self.game)
                talk.watched |= {brain.name} if part.camera else set()
        except EnvError:
            player.close()
            raise
        return player

    def _check(self, known: Mapping[str, float] | None) -> None:
        """Raises EnvError where --env-args has a parameter that the scene does not know."""
        if known is not None and (wrong := self._parts[0].scene.keys() - known.keys()):
            names = ", ".join(known) or "none"
            raise EnvError(f"{self.game} has no parameter {', '.join(sorted(wrong))}; it knows {names}.")

    def _give_up(self, failure: OSError) -> None:
        """Ends the player. Raises EnvFailure after too many in a row."""
        self.close()
        self._failures += 1
        self._wants_reset = True
        if self._failures >= _FAILURES:
            raise EnvFailure(f"The player of {self.game} failed {_FAILURES} times in a row: it {failure}.")
        log.warning("The player of %s %s; it is started again.", self.game, failure)


def begin_scenes(
    config: EnvConfig, parts: Sequence[Arguments], limits: PlayerLimits, seeds: Sequence[int]
) -> list[UnityScene]:
    """One for each of `seeds`; where one cannot begin, the players of those before it end."""
    scenes = list[UnityScene]()
    with ExitStack() as begun:
        for seed in seeds:
            scenes.append(UnityScene(config, parts, limits, seed))
            begun.callback(scenes[-1].close)
        begun.pop_all()
    return scenes


class BrainPart:
    """The bodies of one brain, and the only ones that are played."""

    def __init__(self, scene: UnityScene, number: int = 0) -> None:
        """`number`: among the parts of the scene."""
        self._scene, self._number = scene, number
        self.brain = scene.brains[number]
        self.bodies = len(scene.frames(number))

    def reset(self) -> Frames:
        """Starts the scene anew."""
        self._scene.reset()
        return self._scene.frames(self._number)

    def begin_anew(self) -> Frames:
        """Starts the scene anew where it is over."""
        self._scene.begin_anew()
        return self._scene.frames(self._number)

    def step(self, actions: npt.NDArray[Any]) -> BrainStep:
        """Takes the actions of the first n bodies."""
        return self._scene.step([actions])[0]

    def close(self) -> None:
        """Ends the player."""
        self._scene.close()
