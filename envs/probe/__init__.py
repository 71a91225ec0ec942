"""The family of probes: tiny environments for tests, one file and one entry of PROBES each."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from envs.config import EnvConfig, EnvDescription, description_from_spaces
from envs.contract import Family, SeededVectorEnv
from envs.playback import CellPlayback, Frames, Screen
from envs.probe.catch import Catch
from envs.probe.lock import LENGTHS, Lock

__all__ = ["FAMILY"]

_PREFIX = "probe:"
PROBES: dict[str, Callable[[Sequence[int]], SeededVectorEnv]] = {
    "catch": Catch,
    **{f"lock:{length}": partial(Lock, length) for length in LENGTHS},
}


def _known_names() -> Sequence[str]:
    return [_PREFIX + name for name in ("catch", f"lock:{LENGTHS[0]}", f"lock:{LENGTHS[-1]}")]


def _canonical_name(game: str) -> str | None:
    return game if game.startswith(_PREFIX) and game.removeprefix(_PREFIX) in PROBES else None


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    return PROBES[config.game.removeprefix(_PREFIX)](seeds)


def _describe(config: EnvConfig) -> EnvDescription:
    env = _make(config, [0])
    return description_from_spaces(env.single_observation_space, env.single_action_space)


def _grey(frame: Frames) -> Screen:
    return np.repeat(frame.astype(np.uint8)[..., None], 3, axis=-1)


def _playback(config: EnvConfig, seed: int) -> CellPlayback:
    return CellPlayback(_make(config, [seed]), _grey)


FAMILY = Family(_canonical_name, _known_names, _describe, _make, _playback)
