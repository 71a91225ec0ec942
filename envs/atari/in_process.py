"""ALE games played in turn in this process, each of which can be saved: for runs with --serial."""

from typing import Any

import numpy as np
import numpy.typing as npt

from envs.atari.board import INFOS, ROW
from envs.atari.games import room_byte
from envs.atari.saved import SavableGame
from envs.atari.worker import Seat
from envs.config import EnvConfig
from envs.contract import Frames, Infos
from envs.saving import State


class AleInProcess:
    """Stands in for ale_py.AtariVectorEnv: from the same seeds and actions all is the same bit for bit."""

    def __init__(self, config: EnvConfig, count: int) -> None:
        self._infos_told = INFOS if room_byte(config.game) is not None else INFOS[:-1]
        self._board = np.zeros(count, ROW)
        self._games = [SavableGame(config) for _ in range(count)]
        self._seats = [Seat(config, self._board[row], game) for row, game in enumerate(self._games)]

    def reset(self, *, seed: npt.NDArray[np.int64] | None, options: dict[str, Any]) -> tuple[Frames, Infos]:
        """Restarts what options["reset_mask"] marks, with one seed for each or as their generators are."""
        mask = options["reset_mask"]
        self._board["restart"] = mask
        self._board["seed"][mask] = -1 if seed is None else seed
        for seat in self._seats:
            seat.reset()
        return self._frames(), self._infos()

    def step(
        self, actions: npt.NDArray[np.int64]
    ) -> tuple[Frames, npt.NDArray[np.int32], npt.NDArray[np.bool_], npt.NDArray[np.bool_], Infos]:
        """Takes one action [N] in every environment that is not about to restart."""
        self._board["action"] = actions
        for seat in self._seats:
            seat.step()
        terminated, truncated = (self._board[field].copy() for field in ("terminated", "truncated"))
        return self._frames(), self._board["reward"].copy(), terminated, truncated, self._infos()

    def state_dict(self) -> State:
        """All games."""
        ended = {name: self._board[name].copy() for name in ("terminated", "truncated")}
        return {"games": [game.state_dict() for game in self._games], **ended}

    def load_state_dict(self, state: State) -> None:
        """Goes on from it, after a reset. Raises EnvError."""
        for game, saved in zip(self._games, state["games"], strict=True):
            game.load_state_dict(saved)
        for name in ("terminated", "truncated"):
            self._board[name] = state[name]

    def close(self) -> None:
        """Nothing is left open."""

    def _frames(self) -> Frames:
        """[N, 1, 84, 84], as a stack of one."""
        return self._board["frame"][:, None].copy()

    def _infos(self) -> Infos:
        return {field: self._board[field].copy() for field in self._infos_told}
