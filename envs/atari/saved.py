"""One ALE game that can be saved and gone on with bit by bit, its sticky action included.

ALE's own state has the console, both random generators and the counts of frames, but not the action that it
would repeat. That follows from the generator: ALE draws two numbers before every frame, one for each player,
and goes on with the last action where player one's is below the chance (source: ale-py 0.12.1, found equal
frame by frame in tests/envs/test_saved_atari.py). So a twin of the generator, taken from ALE's state at each
reset, tells which action is held.
"""

import re
from typing import Any

import numpy as np
from ale_py import ALEState

from envs.atari.game import AleGame, GameStep, Grey
from envs.config import EnvConfig, EnvError
from envs.saving import State

_GENERATOR = re.compile(rb"((?:\d+ ){624})(\d+)")  # of C++'s mt19937: its words, and how many are used
_WORDS = 2**32
_TRIES = 64
"""With a chance of 0.25 that one of them is not taken, all fail once in 10^38."""


class SavableGame(AleGame):
    """As AleGame, from the same seed and actions bit for bit."""

    def __init__(self, config: EnvConfig) -> None:
        super().__init__(config, on_frame=self._follow)
        self._sticky = config.proba_sticky_actions * _WORDS
        self._twin = np.random.MT19937()
        self._asked = self._held = 0

    def reset(self, seed: int | None) -> Grey:
        """As AleGame's."""
        frame = super().reset(seed)
        self._held = 0
        self._twin.state = _generator(self._state())
        return frame

    def step(self, action: int) -> tuple[Grey, GameStep]:
        """As AleGame's."""
        self._asked = action
        return super().step(action)

    def state_dict(self) -> State:
        """After a reset: all that later steps depend on."""
        state = self._state()
        if not _same(self._twin.state, _generator(state)):
            raise EnvError("ALE drew other random numbers than this program knows of: it cannot be saved.")
        return {
            "ale": np.frombuffer(state, np.uint8).copy(),
            "held": self._held,
            "captured": [screen.copy() for screen in self._captured],
        }

    def load_state_dict(self, state: State) -> None:
        """Goes on from it, after a reset.

        Raises:
            EnvError: it is none of this game.
        """
        saved = bytes(state["ale"])
        self.ale.reset_game()  # what is played now does not count
        for _ in range(_TRIES if self._sticky else 0):
            self.ale.act(int(state["held"]))
        try:
            self.ale.restoreState(ALEState(saved))
        except Exception as error:  # of kinds that C++ makes up
            raise EnvError("What was saved of an ALE game is damaged.") from error
        if self._state() != saved:
            raise EnvError("What was saved of an ALE game is of another one.")
        self._twin.state = _generator(saved)
        self._held = int(state["held"])
        self._captured = [screen.copy() for screen in state["captured"]]

    def _state(self) -> bytes:
        return bytes(self.ale.cloneState(include_rng=True).__getstate__())

    def _follow(self) -> None:
        """ALE has played one frame."""
        first, _ = self._twin.random_raw(2)
        if first >= self._sticky:
            self._held = self._asked


def _generator(state: bytes) -> Any:
    """The environment's generator; the console has another before it."""
    words, used = _GENERATOR.findall(state)[-1]
    key = np.array(words.split(), np.uint64).astype(np.uint32)
    return {"bit_generator": "MT19937", "state": {"key": key, "pos": int(used)}}


def _same(one: Any, other: Any) -> bool:
    (one, other) = one["state"], other["state"]
    return bool(one["pos"] == other["pos"] and (one["key"] == other["key"]).all())
