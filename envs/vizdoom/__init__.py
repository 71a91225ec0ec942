"""The family of VizDoom's scenarios: Doom as a maze, steered by turning and walking."""

from collections.abc import Sequence
from dataclasses import replace

from envs.config import EnvConfig, EnvDescription
from envs.contract import Family, SeededVectorEnv
from envs.seeding import checked_seeds
from envs.solo import SoloVector, describe
from envs.vizdoom.game import PREFIX, VizDoomGame, VizDoomPlayback

__all__ = ["FAMILY"]

SCENARIOS = ("my_way_home", "health_gathering", "health_gathering_supreme")
"""Of those that come with VizDoom 1.3.2; the others need weapons or steps to the side."""
_TICS_PER_SECOND = 35.0  # Doom's


def _known_names() -> Sequence[str]:
    return [PREFIX + scenario for scenario in SCENARIOS]


def _canonical_name(game: str) -> str | None:
    return game if game in _known_names() else None


def _describe(config: EnvConfig) -> EnvDescription:
    return replace(describe(config), frames_per_second=_TICS_PER_SECOND)


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    games = [VizDoomGame(config) for _ in checked_seeds(seeds, len(seeds))]
    return SoloVector(config, games, seeds)


FAMILY = Family(_canonical_name, _known_names, _describe, _make, VizDoomPlayback)
