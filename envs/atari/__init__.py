"""The family of ALE games: "space_invaders", also written "ALE/SpaceInvaders-v5"."""

from envs.atari.game import AleGame, Grey
from envs.atari.games import FRAMES_PER_SECOND, NUM_ACTIONS, SCREEN, all_games, canonical_name
from envs.atari.vector import AtariVector
from envs.config import EnvConfig, EnvDescription
from envs.playback import Action, Screen
from envs.registry import Family
from envs.seeding import checked_seeds

__all__ = ["FAMILY", "AlePlayback"]


class AlePlayback:
    """Replays the episode that starts when an environment is reset with `seed`, in colour."""

    def __init__(self, config: EnvConfig, seed: int) -> None:
        (self._seed,) = checked_seeds([seed], 1)
        self._game = AleGame(config, film=True)

    def first(self) -> Grey:
        """Starts the episode and returns its first frame [84, 84]."""
        return self._game.reset(self._seed)

    def step(self, action: Action) -> tuple[Grey, list[Screen]]:
        """Returns the frame [84, 84] after `action` (0 to 17), and this step's screens [210, 160, 3]."""
        self._game.screens = []
        frame, *_ = self._game.step(int(action))
        return frame, self._game.screens


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
