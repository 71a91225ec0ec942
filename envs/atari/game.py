"""One ALE game on ALEInterface, which shows what AtariVectorEnv hides: memory, colours, states to clone."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
from ale_py import ALEInterface, LoggerMode, roms

from envs.atari.games import SCREEN
from envs.atari.protocol import episode_cap
from envs.config import EnvConfig, EnvError

Grey = npt.NDArray[np.uint8]


class GameStep(NamedTuple):
    """What one agent step did."""

    reward: int  # points
    terminated: bool
    truncated: bool


class AleGame:
    """Does to one game what ale_py.AtariVectorEnv does: from the same seed, all is equal bit for bit.

    Args:
        config: the game and its protocol.
        on_frame: called after every emulator frame.

    Raises:
        EnvError: ALE has no such game.
    """

    def __init__(self, config: EnvConfig, on_frame: Callable[[], None] = lambda: None) -> None:
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.ale = ALEInterface()
        self.ale.setFloat("repeat_action_probability", config.proba_sticky_actions)
        self._rom = _rom(config.game)
        self._repeat = config.action_repeat
        self._cap = self._last_frame = episode_cap(config)
        self._on_frame = on_frame

    def reset(self, seed: int | None) -> Grey:
        """Starts an episode, with ALE's generator as it is if there is no seed; returns its first frame."""
        if seed is not None:
            self.ale.setInt("random_seed", seed)  # takes effect when the ROM is loaded
            self.ale.loadROM(self._rom)
        self.ale.reset_game()
        self._last_frame = self._cap + self.ale.getEpisodeFrameNumber()  # 16 games begin above 0
        screen = self.ale.getScreenGrayscale()
        self._captured = [screen, np.zeros_like(screen)]  # the maximum is kept in the first
        return self._frame()

    def step(self, action: int) -> tuple[Grey, GameStep]:
        """Returns the frame [84, 84] after `action` (0 to 17) held for `action_repeat` emulator frames."""
        reward, terminated, truncated = 0, False, False
        for remaining in range(self._repeat, 0, -1):
            reward += self.ale.act(action)
            self._on_frame()
            terminated = self.ale.game_over()
            truncated = not terminated and self.ale.getEpisodeFrameNumber() >= self._last_frame
            if terminated or truncated:
                break  # before the capture, as AtariVectorEnv
            if remaining <= 2:
                self._captured[remaining - 1] = self.ale.getScreenGrayscale()
        return self._frame(), GameStep(reward, terminated, truncated)

    def _frame(self) -> Grey:
        latest, before = self._captured
        self._captured[0] = np.maximum(latest, before)
        height, width = SCREEN
        return cv2.resize(self._captured[0], (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8)


def _rom(game: str) -> Path:
    path = roms.get_rom_path(game)
    if path is None:
        raise EnvError(f"ALE has no game called {game}.")
    return path
