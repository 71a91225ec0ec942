"""Players whose brains are each played by a thread of its own, for a learner of its own."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from envs.config import EnvConfig, EnvError
from envs.contract import Flags, Infos
from envs.multi.barrier import SeatView, StepBarrier, Tables
from envs.playback import Frames
from envs.unity.arguments import Arguments
from envs.unity.protocols.bodies import PlayerLimits
from envs.unity.scene import BrainPart, BrainStep, UnityScene, begin_scenes
from envs.unity.vector import UnityVector


class SharedScenes(Tables):
    """A player for each of `seeds`, and a seat for each of `configs`, which name a brain each of their build.

    Raises:
        EnvError: they differ in more than what is a brain's own, or name one brain twice.
    """

    def __init__(self, configs: Sequence[EnvConfig], seeds: Sequence[int]) -> None:
        parts = [Arguments.of(config) for config in configs]
        _check(configs, parts)
        self._configs = configs
        scenes = begin_scenes(configs[0], parts, PlayerLimits(), seeds)
        self._shared = [_SharedScene(scene, len(configs)) for scene in scenes]
        barriers = [shared.barrier for shared in self._shared]
        super().__init__(len(configs), barriers, [scene.close for scene in scenes])

    def seat(self, seat: int) -> SeatView:
        """All bodies of one of them."""
        return BrainView(self._configs[seat], [_SharedPart(shared, seat) for shared in self._shared])

    def leave(self, seat: int) -> None:
        """The others go on, and its bodies take action 0."""
        for shared in self._shared:
            shared.actions[seat] = np.zeros(0)
            shared.barrier.leave(seat)


class BrainView(UnityVector, SeatView):
    """The bodies of one brain, while other threads play the others."""

    def __init__(self, config: EnvConfig, parts: Sequence["_SharedPart"]) -> None:
        super().__init__(config, range(len(parts) * parts[0].bodies), parts)
        self.game, self.config, self.environments = config.game, config, range(self.num_envs)
        self._shared_parts, self._is_new = parts, True

    @property
    def waits_for_others(self) -> bool:
        """Whether all players wait for another brain's actions."""
        shared = [part.shared for part in self._shared_parts]
        return not any(each.barrier.is_moving or each.lock.locked() for each in shared)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        if not self._is_new:
            raise EnvError("A brain cannot begin anew by itself: start this actor again.")
        self._is_new = False
        return super()._restart(mask, seeds)


class _SharedScene:
    """A scene, and the actions that its seats have given."""

    def __init__(self, scene: UnityScene, seats: int) -> None:
        self.scene, self.lock = scene, threading.Lock()
        self.actions: list[npt.NDArray[Any]] = [np.zeros(0)] * seats
        self.brain_steps: list[BrainStep] = []
        self.barrier = StepBarrier(seats, self._advance, scene.game)

    def _advance(self) -> None:
        self.brain_steps = self.scene.step(self.actions)


class _SharedPart(BrainPart):
    """The bodies of one brain of several that are played."""

    def __init__(self, shared: _SharedScene, number: int) -> None:
        super().__init__(shared.scene, number)
        self.shared, self._steps = shared, 0

    def reset(self) -> Frames:
        """The frames of the scene, which has just begun."""
        return self.begin_anew()

    def begin_anew(self) -> Frames:
        """Starts the scene anew where it is over and no other seat has."""
        with self.shared.lock:
            return super().begin_anew()

    def step(self, actions: npt.NDArray[Any]) -> BrainStep:
        """Takes the actions of the first n bodies, once all seats have given theirs."""
        self.shared.actions[self._number] = actions
        self._steps += 1
        self.shared.barrier.wait(self._number, self._steps)
        return self.shared.brain_steps[self._number]

    def close(self) -> None:
        """Nothing ends: the other seats still play."""


def _check(configs: Sequence[EnvConfig], parts: Sequence[Arguments]) -> None:
    if len({config.game for config in configs}) > 1 or any(part.scene != parts[0].scene for part in parts):
        raise EnvError("The runs of --seat-runs play other builds, or have other parameters of the scene.")
    brains = [part.brain for part in parts]
    if len(set(brains)) < len(brains) or "" in brains:
        example = '--env-args \'{"brain": "…"}\''
        raise EnvError(f"Each run of --seat-runs must be of a brain of its own ({example}), not {brains}.")
