"""The family of Malmo's missions, for those who have Minecraft: see docs/malmo.md."""

from collections.abc import Sequence

from envs.config import EnvConfig, EnvError
from envs.contract import Family, SeededVectorEnv
from envs.malmo.game import MalmoVector
from envs.malmo.missions import ROOMS
from envs.playback import Playback
from envs.solo import describe

__all__ = ["FAMILY"]

_PREFIX = "malmo:"


def _known_names() -> Sequence[str]:
    return ["malmo", *(f"{_PREFIX}{mission}" for mission in ROOMS)]


def _canonical_name(game: str) -> str | None:
    if game not in _known_names():
        return None
    return f"{_PREFIX}1" if game == "malmo" else game


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    return MalmoVector(config, int(config.game.removeprefix(_PREFIX)), seeds)


def _playback(config: EnvConfig, seed: int) -> Playback:
    raise EnvError(
        f"{config.game} cannot be filmed or replayed, since Minecraft does not repeat itself: "
        "watch Minecraft itself with --onscreen-rendering."
    )


FAMILY = Family(_canonical_name, _known_names, describe, _make, _playback)
