"""The family of Gymnasium environments: every registered id, also "module:Id"."""

from collections.abc import Sequence

import gymnasium

from envs.config import EnvConfig, EnvDescription, description_from_spaces
from envs.family import Family
from envs.gym.playback import GymPlayback
from envs.gym.spaces import agent_actions, frame_space
from envs.gym.vector import GymVector, build

__all__ = ["GYMNASIUM"]


def _canonical_name(game: str) -> str | None:
    try:
        gymnasium.spec(game)
    except (gymnasium.error.Error, ImportError, ValueError):
        return None
    return game


def _known_names() -> Sequence[str]:
    return tuple(gymnasium.registry)


def _describe(config: EnvConfig) -> EnvDescription:
    env = build(config.game)
    frames = frame_space(env.observation_space, config.game)
    actions = agent_actions(env.action_space, config.game)
    env.close()
    return description_from_spaces(frames, actions)


GYMNASIUM = Family("gymnasium", _canonical_name, _known_names, _describe, GymVector, GymPlayback)
