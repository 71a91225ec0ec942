"""The family of ALE games: "space_invaders", also written "ALE/SpaceInvaders-v5"."""

from envs.atari.game import AlePlayback
from envs.atari.games import FRAMES_PER_SECOND, NUM_ACTIONS, SCREEN, all_games, canonical_name
from envs.atari.vector import AtariVector
from envs.config import EnvConfig, EnvDescription
from envs.contract import Family

__all__ = ["FAMILY"]


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


FAMILY = Family(canonical_name, all_games, _describe, AtariVector, AlePlayback)
