"""Seeds of environments: every (run seed, actor, start, environment) has its own.

Consecutive integers will not do: with `seed + id`, environment 1 of actor 0 would be a copy of environment 0
of actor 1. NumPy's SeedSequence hashes all four numbers instead, so that neighbours share nothing; `start`
(T_actors when the actor started) makes an actor that restarts play new episodes.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from envs.config import EnvError

MAX_SEED = 2**31 - 1  # ALE keeps a seed in a signed 32-bit integer, and takes -1 for "draw one"


def environment_seeds(seed: int, actor: int, start: int, count: int) -> list[int]:
    """Returns `count` seeds in [0, 2^31); the first k are the same for every `count` >= k.

    Raises:
        EnvError: a number is negative.
    """
    if min(seed, actor, start, count) < 0:
        raise EnvError(f"Seeds need numbers from 0 on, not {seed=}, {actor=}, {start=}, {count=}.")
    sequences = (np.random.SeedSequence((seed, actor, start, environment)) for environment in range(count))
    return [int(sequence.generate_state(1)[0] >> 1) for sequence in sequences]


def draw_seed(generator: np.random.Generator) -> int:
    """Returns the seed of an environment's next episode, in [0, 2^31)."""
    return int(generator.integers(MAX_SEED + 1))


def checked_seeds(seeds: int | Sequence[int], count: int) -> list[int]:
    """Returns `count` seeds as a list of plain integers in [0, 2^31).

    Raises:
        EnvError: a single integer, another number of seeds, none at all, or one out of range.
    """
    if isinstance(seeds, int) or len(seeds) != count:
        raise EnvError(f"Each environment needs its own seed: {count} are due, {seeds} was given.")
    if count == 0:
        raise EnvError("At least one environment, with its seed, is needed.")
    for seed in seeds:
        if not 0 <= seed <= MAX_SEED:
            raise EnvError(f"An environment's seed must lie between 0 and {MAX_SEED}, not {seed}.")
    return [int(seed) for seed in seeds]


def check_mask(mask: object, count: int, first: bool) -> None:
    """Which of `count` environments a reset restarts; `first`: nothing was reset before.

    Raises:
        EnvError: it is no boolean array [count], marks none, or leaves one out of the first reset.
    """
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (count,):
        raise EnvError(f"A reset mask must be a boolean array of shape ({count},).")
    if not mask.any():
        raise EnvError("A reset mask must mark at least one environment.")
    if first and not mask.all():
        raise EnvError("The first reset must be one of all environments.")


def seed_rows(
    generators: list[np.random.Generator], mask: npt.NDArray[np.bool_], seeds: Sequence[int] | None
) -> list[int]:
    """The marked rows; where there are seeds for them, their generators are made anew."""
    rows: list[int] = np.flatnonzero(mask).tolist()
    for row, seed in zip(rows, seeds or (), strict=seeds is not None):
        generators[row] = np.random.default_rng(seed)
    return rows
