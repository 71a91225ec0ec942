"""The family of MinAtar's games (Young, Tian 2019, arXiv 1903.03176): "minatar:breakout" and four others.

An optional package, imported when a game is built and not to describe one.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module

from gymnasium.spaces import Discrete

from envs.config import EnvConfig, EnvDescription, EnvError, description_from_spaces
from envs.contract import Playback, SeededVectorEnv
from envs.family import Family
from envs.minatar.games import ACTIONS, CHANNELS, frame_space

__all__ = ["MINATAR"]

_PREFIX = "minatar:"


def _known_names() -> Sequence[str]:
    return [_PREFIX + name for name in CHANNELS]


def _canonical_name(game: str) -> str | None:
    return game if game in _known_names() else None


def _describe(config: EnvConfig) -> EnvDescription:
    frames = frame_space(config.game.removeprefix(_PREFIX))
    described = description_from_spaces(frames, Discrete(ACTIONS))
    return replace(described, history_length=1)  # channels of trails show what moves


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    _find_minatar(config.game)
    from envs.minatar.vector import MinAtarVector

    return MinAtarVector(config.game.removeprefix(_PREFIX), config.max_episode_steps, seeds)


def _playback(config: EnvConfig, seed: int) -> Playback:
    from envs.minatar.playback import MinAtarPlayback

    return MinAtarPlayback(_make(config, [seed]))


def _find_minatar(game: str) -> None:
    """Raises EnvError where the package is not installed; the sentence names the remedy."""
    try:
        import_module("minatar")
    except ImportError as error:
        raise EnvError(
            f"{game} needs the package minatar: `EXTRAS=minatar bash scripts/setup.sh` gets it."
        ) from error


MINATAR = Family("minatar", _canonical_name, _known_names, _describe, _make, _playback)
