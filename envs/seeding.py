"""Seeds of environments: every (run seed, actor, start, environment) has its own.

Consecutive integers will not do: with `seed + id`, environment 1 of actor 0 would be a copy of environment 0
of actor 1. NumPy's SeedSequence hashes all four numbers instead, so that neighbours share nothing; `start`
(T_actors when the actor started) makes an actor that restarts play new episodes.
"""

import numpy as np

from envs.config import EnvError


def environment_seeds(seed: int, actor: int, start: int, count: int) -> list[int]:
    """Returns `count` seeds in [0, 2^31); the first k are the same for every `count` >= k.

    Raises:
        EnvError: a number is negative.
    """
    if min(seed, actor, start, count) < 0:
        raise EnvError(f"Seeds need numbers from 0 on, not {seed=}, {actor=}, {start=}, {count=}.")
    sequences = (np.random.SeedSequence((seed, actor, start, environment)) for environment in range(count))
    return [int(sequence.generate_state(1)[0] >> 1) for sequence in sequences]
