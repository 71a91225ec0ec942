"""The family of VizDoom's scenarios: Doom as a maze, steered by turning and walking."""

from collections.abc import Sequence
from dataclasses import replace

from envs.config import EnvConfig, EnvDescription
from envs.contract import SeededVectorEnv, checked_seeds
from envs.family import Family
from envs.solo import SoloVector, describe
from envs.vizdoom.game import VizDoomGame
from envs.vizdoom.playback import VizDoomPlayback
from envs.vizdoom.scenarios import canonical_name, known_names

__all__ = ["VIZDOOM"]

_TICS_PER_SECOND = 35.0  # Doom's


def _describe(config: EnvConfig) -> EnvDescription:
    return replace(describe(config), frames_per_second=_TICS_PER_SECOND)


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    games = [VizDoomGame(config) for _ in checked_seeds(seeds, len(seeds))]
    return SoloVector(config, games, seeds)


VIZDOOM = Family("vizdoom", canonical_name, known_names, _describe, _make, VizDoomPlayback)
