"""Every environment of every actor and every start of it has its own seed."""

import itertools

import pytest

from envs.config import EnvError
from envs.seeding import environment_seeds


def test_neighbours_share_no_seed() -> None:
    blocks = itertools.product(range(3), range(8), range(3))
    seeds = [seed for block in blocks for seed in environment_seeds(*block, count=16)]
    assert len(set(seeds)) == len(seeds) == 3 * 8 * 3 * 16
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 for seed in seeds)


def test_more_environments_keep_the_first_ones_seeds() -> None:
    assert environment_seeds(1, 2, 3, 5) == environment_seeds(1, 2, 3, 9)[:5]


def test_seeds_are_reproducible_and_the_order_of_numbers_matters() -> None:
    assert environment_seeds(7, 1, 0, 4) == environment_seeds(7, 1, 0, 4)
    assert environment_seeds(7, 1, 0, 4) != environment_seeds(7, 0, 1, 4)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(EnvError, match="from 0 on"):
        environment_seeds(1, -1, 0, 4)
