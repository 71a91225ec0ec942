"""No-op starts (Mnih et al. 2015): a random number of emulator frames without an action begins each episode.

ale_py.AtariVectorEnv draws it from a generator of its own, C++'s mt19937, which a reset with a seed seeds
with the same number as ALE's. Its distribution is the standard library's: what stands here is that of GCC, by
which ale-py's wheels for Linux are built (0.12.1; tests/envs/test_atari_protocol.py compares both).
"""

from typing import Any

import numpy as np

_WORD = 2**32


class NoopDraws:
    """Draws what AtariVectorEnv draws with the same `noop_max`: from 0 to `noop_max` - 1; 0: always 0."""

    def __init__(self, noop_max: int) -> None:
        self._range = noop_max
        self._generator = np.random.MT19937()

    def seed(self, seed: int) -> None:
        """As C++'s mt19937; this is NumPy's way of RandomState alone."""
        self.load_state_dict(np.random.RandomState(seed).get_state(legacy=False))

    def draw(self) -> int:
        """How many no-ops begin the next episode (Lemire 2019, arXiv:1805.10941, algorithm 5)."""
        if not self._range:
            return 0
        while True:
            product = int(self._generator.random_raw()) * self._range
            if product % _WORD >= _WORD % self._range:
                return product // _WORD

    def state_dict(self) -> dict[str, Any]:
        """The generator's: its words, and how many are used."""
        state = self._generator.state["state"]
        return {"state": {"key": state["key"].copy(), "pos": int(state["pos"])}}

    def load_state_dict(self, state: Any) -> None:
        """Continue from `state_dict()`."""
        self._generator.state = {"bit_generator": "MT19937", "state": state["state"]}
