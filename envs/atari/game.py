"""ALE games on ALEInterface, which gives what AtariVectorEnv hides: memory, colours, states to save."""

from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from ale_py import ALEInterface, LoggerMode

from envs.atari.games import SCREEN, episode_cap, rom_of, room_byte
from envs.atari.noops import NoopDraws
from envs.atari.state import WORDS, generator_in, restore_ale, state_of
from envs.config import EnvConfig, EnvError
from envs.contract import Flags, Infos
from envs.playback import Frames, Screen
from envs.saving import Saved, State

_NOOP = 0
Grey = npt.NDArray[np.uint8]
GameStep = tuple[Grey, int, bool, bool]  # frame [84, 84], points, terminated, truncated
GameSteps = tuple[Frames, npt.NDArray[np.int32], Flags, Flags, Infos]  # of N games; frames [N, 1, 84, 84]


class AleGame(Saved):
    """One game as ale_py.AtariVectorEnv plays it: bit for bit the same from the same seed.

    After a reset it can be saved.

    Args:
        film: Whether `screens` collects a picture [210, 160, 3] of every emulator frame.

    Raises:
        EnvError: ALE has no such game.
    """

    SAVED = "_held", "_captured", "_noops"

    def __init__(self, config: EnvConfig, film: bool = False) -> None:
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.ale = ALEInterface()
        self.ale.setFloat("repeat_action_probability", config.proba_sticky_actions)
        self.screens: list[Screen] = []
        self._film = film
        self._rom = rom_of(config.game)
        self._repeat = config.action_repeat
        self._cap = self._last_frame = episode_cap(config)
        self._sticky_below = config.proba_sticky_actions * WORDS
        self._generator = np.random.MT19937()  # draws what ALE's draws
        self._held = _NOOP  # the action that a sticky action repeats
        self._noops = NoopDraws(config.noop_max)

    def reset(self, seed: int | None) -> Grey:
        """Starts an episode, with ALE's generator as it is if there is no seed; returns its first frame."""
        if seed is not None:
            self.ale.setInt("random_seed", seed)  # takes effect when the ROM is loaded
            self.ale.loadROM(self._rom)
            self._noops.seed(seed)
        self.ale.reset_game()
        for _ in range(self._noops.draw()):
            self.ale.act(_NOOP)
            if self.ale.game_over():
                self.ale.reset_game()
        self._last_frame = self._cap + self.ale.getEpisodeFrameNumber()  # 16 games begin above 0
        screen = self.ale.getScreenGrayscale()
        self._captured = [screen, np.zeros_like(screen)]  # the maximum is kept in the first
        self._held = _NOOP
        self._generator.state = generator_in(state_of(self.ale))
        return self._frame()

    def step(self, action: int) -> GameStep:
        """Holds `action` (0 to 17) for `action_repeat` emulator frames."""
        reward, terminated, truncated = 0, False, False
        for remaining in range(self._repeat, 0, -1):
            reward += self.ale.act(action)
            if self._film:
                self.screens.append(self.ale.getScreenRGB())
            terminated = self.ale.game_over()
            truncated = not terminated and self.ale.getEpisodeFrameNumber() >= self._last_frame
            if terminated or truncated:
                break  # before the capture, as AtariVectorEnv
            if remaining <= 2:
                self._captured[remaining - 1] = self.ale.getScreenGrayscale()
        drawn = self._generator.random_raw(2 * (self._repeat - remaining + 1))
        if drawn[::2].max() >= self._sticky_below:  # player one's, a number for each frame
            self._held = action
        return self._frame(), reward, terminated, truncated

    def state_dict(self) -> State:
        """Returns all that later steps depend on."""
        state = state_of(self.ale)
        ours, ales = self._generator.state["state"], generator_in(state)["state"]
        if ours["pos"] != ales["pos"] or (ours["key"] != ales["key"]).any():
            raise EnvError("ALE drew other random numbers than this program knows of: it cannot be saved.")
        return {"ale": np.frombuffer(state, np.uint8).copy(), **(super().state_dict() or {})}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from it, after a reset. Raises EnvError where it is damaged or of another game."""
        ale, held = bytes(state["ale"]), int(state["held"])
        restore_ale(self.ale, ale, held if self._sticky_below else None)
        self._generator.state = generator_in(ale)
        own = {"noops": self._noops.state_dict()}  # an earlier version knew none
        super().load_state_dict({**own, **state})

    def _frame(self) -> Grey:
        latest, before = self._captured
        self._captured[0] = np.maximum(latest, before)
        height, width = SCREEN
        return cv2.resize(self._captured[0], (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8)


class AleInProcess(Saved):
    """Games played in turn in this process (--serial): from the same seeds and actions, bit for bit as
    AleThreads. Of a game with rooms, infos["room"] int64 [N] is the one that each frame shows; with
    `terminal_on_life_loss` infos["lives"] int64 [N] are those left.
    """

    SAVED = "_games", "_terminated", "_truncated"

    def __init__(self, config: EnvConfig, count: int) -> None:
        self._games = [AleGame(config) for _ in range(count)]
        self._info_of: dict[str, Callable[[AleGame], int]] = {}  # what reads an info of one game
        if (byte := room_byte(config.game)) is not None:
            self._info_of["room"] = lambda game: int(game.ale.getRAM()[byte])
        if config.terminal_on_life_loss:
            self._info_of["lives"] = lambda game: game.ale.lives()
        self._frames = np.zeros((count, 1, *SCREEN), np.uint8)
        self._rewards = np.zeros(count, np.int32)
        self._terminated, self._truncated = np.zeros((2, count), np.bool_)

    def reset(self, *, seed: npt.NDArray[np.int64] | None, options: dict[str, Any]) -> tuple[Frames, Infos]:
        """Restarts what options["reset_mask"] marks, with one seed for each or as their generators are."""
        rows = np.flatnonzero(options["reset_mask"]).tolist()
        seeds = [None] * len(rows) if seed is None else seed.tolist()
        for row, own_seed in zip(rows, seeds, strict=True):
            self._restart(row, own_seed)
        return self._frames.copy(), self._infos() if self._info_of else {}

    def step(self, actions: npt.NDArray[np.int64]) -> GameSteps:
        """Takes one action [N] in every environment that is not about to restart."""
        for row, game in enumerate(self._games):
            if self._terminated[row] or self._truncated[row]:
                self._restart(row, None)
                continue
            step = game.step(int(actions[row]))
            self._frames[row, 0], self._rewards[row], self._terminated[row], self._truncated[row] = step
        flags = self._terminated.copy(), self._truncated.copy()
        return self._frames.copy(), self._rewards.copy(), *flags, self._infos() if self._info_of else {}

    def close(self) -> None:
        """Nothing is left open."""

    def _restart(self, row: int, seed: int | None) -> None:
        self._frames[row, 0] = self._games[row].reset(seed)
        self._rewards[row], self._terminated[row], self._truncated[row] = 0, False, False

    def _infos(self) -> Infos:
        return {name: np.array([*map(read, self._games)], np.int64) for name, read in self._info_of.items()}
