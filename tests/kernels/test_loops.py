"""Work in shares comes to the same as in one piece."""

from __future__ import annotations

import multiprocessing
import time

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from kernels import tensors as loops
from kernels.tensors import in_shares

Part = tuple[int, int]


def parts_of(rows: int, threads: int) -> list[Part]:
    """As they are handed out, from the first row on."""
    torch.set_num_threads(threads)
    parts: list[Part] = []
    in_shares(lambda first, stop: parts.append((first, stop)), rows=rows, numbers=loops.LEAST_NUMBERS)
    return sorted(parts)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_every_row_is_in_one_share(threads: int) -> None:
    for rows in (1, 2, 7, 32):
        parts = parts_of(rows, threads)
        assert len(parts) == min(threads, rows)
        assert [row for first, stop in parts for row in range(first, stop)] == list(range(rows))


def test_little_work_is_not_shared() -> None:
    torch.set_num_threads(2)
    parts: list[Part] = []
    in_shares(lambda first, stop: parts.append((first, stop)), rows=8, numbers=loops.LEAST_NUMBERS - 1)
    assert parts == [(0, 8)]


@pytest.mark.parametrize("faulty", [0, 1])
def test_a_fault_in_any_share_comes_out(faulty: int) -> None:
    torch.set_num_threads(2)

    def loop(first: int, stop: int) -> None:
        if first == 4 * faulty:
            raise ArithmeticError(f"share {faulty}")

    with pytest.raises(ArithmeticError, match=f"share {faulty}"):
        in_shares(loop, rows=8, numbers=loops.LEAST_NUMBERS)


def test_arrays_are_the_tensors_own_memory() -> None:
    def fill(numbers: NDArray[np.float32], bits: NDArray[np.uint16], first: int, stop: int) -> None:
        assert bits.dtype == np.uint16
        numbers[first:stop], bits[first:stop] = 2.5, 0x3F80

    numbers, rounded = torch.zeros(3, requires_grad=True), torch.zeros(3, dtype=torch.bfloat16)
    in_shares(fill, numbers, rounded, rows=3, numbers=3)
    assert numbers.tolist() == [2.5] * 3 and rounded.tolist() == [1.0] * 3


def test_a_child_that_was_forked_shares_its_own_work() -> None:
    """Its parent's threads are not there."""
    parts_of(8, threads=2)
    child = multiprocessing.get_context("fork").Process(target=parts_of, args=(8, 2))
    child.start()
    child.join(20)
    if child.is_alive():
        child.kill()
    assert child.exitcode == 0


def test_a_fault_is_told_when_all_shares_are_done() -> None:
    torch.set_num_threads(2)
    done: list[int] = []

    def loop(first: int, stop: int) -> None:
        if first == 0:
            raise ArithmeticError
        time.sleep(0.1)
        done.append(first)

    with pytest.raises(ArithmeticError):
        in_shares(loop, rows=8, numbers=loops.LEAST_NUMBERS)
    assert done == [4]
