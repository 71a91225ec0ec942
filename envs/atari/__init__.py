"""The family of ALE games: "space_invaders", also written "ALE/SpaceInvaders-v5"."""

from collections.abc import Sequence

from envs.atari.game import AleGame, Grey
from envs.atari.games import FRAMES_PER_SECOND, SCREEN, actions_of, all_games, canonical_name
from envs.atari.lives import LifeEpisodes
from envs.atari.vector import AtariVector
from envs.config import EnvConfig, EnvDescription
from envs.contract import SeededVectorEnv
from envs.playback import Action, Screen
from envs.registry import Family

__all__ = ["FAMILY", "AlePlayback"]


class AlePlayback:
    """Replays the episode that starts when an environment is reset with `seed`, in colour."""

    def __init__(self, config: EnvConfig, seed: int) -> None:
        self._game, self._actions, self._seed = AleGame(config, film=True), actions_of(config), seed

    def first(self) -> Grey:
        """Starts the episode and returns its first frame [84, 84]."""
        return self._game.reset(self._seed)

    def step(self, action: Action) -> tuple[Grey, list[Screen]]:
        """Returns the frame [84, 84] after an action of the agent, and the step's screens [210, 160, 3]."""
        self._game.screens = []
        frame, *_ = self._game.step(self._actions[int(action)])
        return frame, self._game.screens

    def close(self) -> None:
        """Nothing is left open."""


def _describe(config: EnvConfig) -> EnvDescription:
    return EnvDescription(
        frame_shape=SCREEN,
        frame_dtype="uint8",
        num_actions=len(actions_of(config)),
        action_low=None,
        action_high=None,
        frames_per_step=config.action_repeat,
        frames_per_second=float(FRAMES_PER_SECOND),
        history_length=4,
    )


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    games = AtariVector(config, seeds)
    return LifeEpisodes(games, seeds) if config.terminal_on_life_loss else games


FAMILY = Family(canonical_name, all_games, _describe, _make, AlePlayback)
