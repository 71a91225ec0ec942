"""The family of ALE games."""

from collections.abc import Sequence

from envs.atari.games import NUM_ACTIONS, SCREEN, all_games, canonical_name
from envs.atari.playback import AlePlayback
from envs.atari.protocol import FRAMES_PER_SECOND
from envs.atari.vector import AtariVector
from envs.config import EnvConfig, EnvDescription
from envs.family import Family

__all__ = ["ATARI"]


def _describe(config: EnvConfig) -> EnvDescription:
    return EnvDescription(
        frame_shape=SCREEN,
        frame_dtype="uint8",
        num_actions=NUM_ACTIONS,
        action_low=None,
        action_high=None,
        frames_per_step=config.action_repeat,
        frames_per_second=float(FRAMES_PER_SECOND),
        history_length=4,
    )


def _names() -> Sequence[str]:
    return all_games()


ATARI = Family("ale", canonical_name, _names, _describe, AtariVector, AlePlayback)
