"""ALE games on ALEInterface, which gives what AtariVectorEnv hides: memory, colours, states to save.

ALE's own state holds the console, both random generators and the counts of frames, but not the action that a
sticky action repeats. It follows from the generator: before every frame ALE draws two numbers, one for each
player, and repeats the last action where player one's is below the probability (source: ale-py 0.12.1, found
equal frame by frame in tests/envs/test_saved_atari.py). `SavableGame` copies that generator from ALE's state
at each reset and draws the same numbers, so that it knows the held action.
"""

import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from ale_py import ALEInterface, ALEState, LoggerMode, roms

from envs.atari.games import SCREEN, episode_cap, room_byte
from envs.config import EnvConfig, EnvError
from envs.contract import Flags, Infos
from envs.playback import Frames, Screen
from envs.saving import State

Grey = npt.NDArray[np.uint8]
GameStep = tuple[Grey, int, bool, bool]  # frame [84, 84], points, terminated, truncated
GameSteps = tuple[Frames, npt.NDArray[np.int32], Flags, Flags, Infos]  # of N games; frames [N, 1, 84, 84]

_GENERATOR = re.compile(rb"((?:\d+ ){624})(\d+)")  # of C++'s mt19937: its words, and how many are used
_WORDS = 2**32
_TRIES = 64
"""With a probability of 0.25 that one of them is not taken, all fail once in 10^38."""


class AleGame:
    """Does to one game what ale_py.AtariVectorEnv does: from the same seed, all is equal bit for bit.

    Args:
        config: the game and its protocol.
        film: whether `screens` collects a picture [210, 160, 3] of every emulator frame.

    Raises:
        EnvError: ALE has no such game.
    """

    def __init__(self, config: EnvConfig, film: bool = False) -> None:
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.ale = ALEInterface()
        self.ale.setFloat("repeat_action_probability", config.proba_sticky_actions)
        self.screens: list[Screen] = []
        self._film = film
        self._rom = _rom(config.game)
        self._repeat = config.action_repeat
        self._cap = self._last_frame = episode_cap(config)
        self._frames_played = 0  # by the last step

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
        self._frames_played = self._repeat - remaining + 1
        return self._frame(), reward, terminated, truncated

    def _frame(self) -> Grey:
        latest, before = self._captured
        self._captured[0] = np.maximum(latest, before)
        height, width = SCREEN
        return cv2.resize(self._captured[0], (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8)


class SavableGame(AleGame):
    """As AleGame, from the same seed and actions bit for bit; it can be saved after a reset."""

    def __init__(self, config: EnvConfig) -> None:
        super().__init__(config)
        self._sticky_below = config.proba_sticky_actions * _WORDS
        self._generator = np.random.MT19937()  # draws what ALE's draws
        self._held = 0  # the action that a sticky action repeats

    def reset(self, seed: int | None) -> Grey:
        """As AleGame's."""
        frame = super().reset(seed)
        self._held = 0
        self._generator.state = _generator_in(self._ale_state())
        return frame

    def step(self, action: int) -> GameStep:
        """As AleGame's."""
        step = super().step(action)
        of_player_one = self._generator.random_raw(2 * self._frames_played)[::2]
        if of_player_one.max() >= self._sticky_below:
            self._held = action
        return step

    def state_dict(self) -> State:
        """Returns all that later steps depend on."""
        state = self._ale_state()
        ours, ales = self._generator.state["state"], _generator_in(state)["state"]
        if ours["pos"] != ales["pos"] or (ours["key"] != ales["key"]).any():
            raise EnvError("ALE drew other random numbers than this program knows of: it cannot be saved.")
        return {
            "ale": np.frombuffer(state, np.uint8).copy(),
            "held": self._held,
            "captured": [screen.copy() for screen in self._captured],
        }

    def load_state_dict(self, state: State) -> None:
        """Continues from it, after a reset.

        Raises:
            EnvError: it is damaged or of another game.
        """
        saved = bytes(state["ale"])
        self.ale.reset_game()  # what is played now does not count
        for _ in range(_TRIES if self._sticky_below else 0):
            self.ale.act(int(state["held"]))
        try:
            self.ale.restoreState(ALEState(saved))
        except Exception as error:  # of kinds that C++ makes up
            raise EnvError("What was saved of an ALE game is damaged.") from error
        if self._ale_state() != saved:
            raise EnvError("What was saved of an ALE game is of another one.")
        self._generator.state = _generator_in(saved)
        self._held = int(state["held"])
        self._captured = [screen.copy() for screen in state["captured"]]

    def _ale_state(self) -> bytes:
        return bytes(self.ale.cloneState(include_rng=True).__getstate__())


class AleInProcess:
    """Games played in turn in this process (--serial): from the same seeds and actions, bit for bit as
    AleThreads. Of a game with rooms, infos["room"] int64 [N] is the one that each frame shows.
    """

    def __init__(self, config: EnvConfig, count: int) -> None:
        self._games = [SavableGame(config) for _ in range(count)]
        self._room_byte = room_byte(config.game)
        self._frames = np.zeros((count, 1, *SCREEN), np.uint8)
        self._rewards = np.zeros(count, np.int32)
        self._terminated, self._truncated = np.zeros((2, count), np.bool_)

    def reset(self, *, seed: npt.NDArray[np.int64] | None, options: dict[str, Any]) -> tuple[Frames, Infos]:
        """Restarts what options["reset_mask"] marks, with one seed for each or as their generators are."""
        rows = np.flatnonzero(options["reset_mask"]).tolist()
        seeds = [None] * len(rows) if seed is None else seed.tolist()
        for row, own_seed in zip(rows, seeds, strict=True):
            self._restart(row, own_seed)
        return self._frames.copy(), self._infos()

    def step(self, actions: npt.NDArray[np.int64]) -> GameSteps:
        """Takes one action [N] in every environment that is not about to restart."""
        for row, game in enumerate(self._games):
            if self._terminated[row] or self._truncated[row]:
                self._restart(row, None)
                continue
            step = game.step(int(actions[row]))
            self._frames[row, 0], self._rewards[row], self._terminated[row], self._truncated[row] = step
        flags = self._terminated.copy(), self._truncated.copy()
        return self._frames.copy(), self._rewards.copy(), *flags, self._infos()

    def state_dict(self) -> State:
        """Returns the states of all games."""
        games = [game.state_dict() for game in self._games]
        return {"games": games, "terminated": self._terminated.copy(), "truncated": self._truncated.copy()}

    def load_state_dict(self, state: State) -> None:
        """Continues from it, after a reset; EnvError as SavableGame's."""
        for game, saved in zip(self._games, state["games"], strict=True):
            game.load_state_dict(saved)
        self._terminated[:], self._truncated[:] = state["terminated"], state["truncated"]

    def close(self) -> None:
        """Nothing is left open."""

    def _restart(self, row: int, seed: int | None) -> None:
        self._frames[row, 0] = self._games[row].reset(seed)
        self._rewards[row], self._terminated[row], self._truncated[row] = 0, False, False

    def _infos(self) -> Infos:
        fields: dict[str, list[int]] = {"lives": [], "frame_number": [], "episode_frame_number": []}
        for game in self._games:
            fields["lives"].append(game.ale.lives())
            fields["frame_number"].append(game.ale.getFrameNumber())
            fields["episode_frame_number"].append(game.ale.getEpisodeFrameNumber())
        infos: Infos = {name: np.array(values, np.int32) for name, values in fields.items()}
        if self._room_byte is not None:
            infos["room"] = np.array([game.ale.getRAM()[self._room_byte] for game in self._games], np.int64)
        return infos


def _rom(game: str) -> Path:
    path = roms.get_rom_path(game)
    if path is None:
        raise EnvError(f"ALE has no game called {game}.")
    return path


def _generator_in(state: bytes) -> Any:
    """The environment's generator in a state of ALE; the console has another before it."""
    words, used = _GENERATOR.findall(state)[-1]
    key = np.array(words.split(), np.uint64).astype(np.uint32)
    return {"bit_generator": "MT19937", "state": {"key": key, "pos": int(used)}}
