"""What ALE saves of a game, and the random numbers that the game will draw.

ALE's own state holds the console, both random generators and the counts of frames, but not the action that a
sticky action repeats. It follows from the generator: before every frame ALE draws two numbers, one for each
player, and repeats the last action where player one's is below the probability (source: ale-py 0.12.1, found
equal frame by frame in tests/envs/test_saved_atari.py). `AleGame` copies that generator from ALE's state at
each reset and draws the same numbers, so that it knows the held action.
"""

import re
from typing import Any

import numpy as np
from ale_py import ALEInterface, ALEState

from envs.config import EnvError

WORDS = 2**32
"""How many numbers the generator draws from."""
_GENERATOR = re.compile(rb"((?:\d+ ){624})(\d+)")  # of C++'s mt19937: its words, and how many are used
_TRIES = 64
"""With a probability of 0.25 that one of them is not taken, all fail once in 10^38."""


def state_of(ale: ALEInterface) -> bytes:
    """ALE's own state, generators included."""
    return bytes(ale.cloneState(include_rng=True).__getstate__())


def generator_in(state: bytes) -> Any:
    """The environment's generator in a state of ALE; the console has another before it."""
    words, used = _GENERATOR.findall(state)[-1]
    key = np.array(words.split(), np.uint64).astype(np.uint32)
    return {"bit_generator": "MT19937", "state": {"key": key, "pos": int(used)}}


def restore_ale(ale: ALEInterface, state: bytes, held: int | None) -> None:
    """Continue from `state_of` another, after a reset.

    Args:
        held: The action that a sticky action repeats; None where no action is sticky.

    Raises:
        EnvError: It is damaged or of another game.
    """
    ale.reset_game()  # what is played now does not count
    if held is not None:
        for _ in range(_TRIES):
            ale.act(held)
    try:
        ale.restoreState(ALEState(state))
    except Exception as error:  # of kinds that C++ makes up
        raise EnvError("What was saved of an ALE game is damaged.") from error
    if state_of(ale) != state:
        raise EnvError("What was saved of an ALE game is of another one.")
