"""Passes at the same time compute what they compute one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from numpy.typing import NDArray

from agents import Agent
from agents.parallel import Threads, in_parallel, set_threads
from memory.batch import Batch
from tests.agents.conftest import PROBLEMS

PATIENCE_S = 20.0


def enlarged(frames: NDArray[Any]) -> NDArray[Any]:
    """[B, H, 10, 5] -> [B, H, 50, 25]: every pixel is a patch."""
    return frames.repeat(5, axis=2).repeat(5, axis=3)


@pytest.fixture(autouse=True)
def two_passes() -> Iterator[None]:
    before = torch.get_num_threads()
    set_threads(Threads(1, passes=2))
    yield
    set_threads(Threads(before))


def test_they_run_at_the_same_time() -> None:
    """Each waits for the other to have begun; gradients are switched off in one alone."""
    both = threading.Barrier(2)

    @torch.no_grad()
    def first() -> tuple[int, bool]:
        both.wait(PATIENCE_S)
        return torch.get_num_threads(), torch.is_grad_enabled()

    def second() -> tuple[int, bool]:
        both.wait(PATIENCE_S)
        return torch.get_num_threads(), torch.is_grad_enabled()

    assert in_parallel(first, second) == ((1, False), (1, True))


def test_the_number_of_threads_is_that_of_both() -> None:
    """Also where it was another when the second thread first worked."""
    in_parallel(int, int)
    set_threads(Threads(2, passes=2))
    assert in_parallel(torch.get_num_threads, torch.get_num_threads) == (2, 2)


@pytest.mark.parametrize("fails", ["first", "second"])
def test_an_error_comes_when_both_have_ended(fails: str) -> None:
    ended = list[str]()

    def work(name: str) -> None:
        if name == fails:
            raise ValueError(name)
        threading.Event().wait(0.05)
        ended.append(name)

    with pytest.raises(ValueError, match=fails):
        in_parallel(lambda: work("first"), lambda: work("second"))
    assert len(ended) == 1


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("torso", ["auto", "data_efficient"])
def test_agents_learn_the_same(
    name: str, torso: str, precision: str, make_agent: Callable[..., Agent], make_batch: Callable[..., Batch]
) -> None:
    """Bit by bit, noise and taus included; also where networks share patches."""
    problem, batches = PROBLEMS[name], [make_batch(rows=16, seed=seed) for seed in range(4)]
    if torso == "data_efficient":
        problem = replace(problem, observation_shape=(2, 50, 25))
        batches = [batch._replace(s_tm1=enlarged(batch.s_tm1), s_t=enlarged(batch.s_t)) for batch in batches]

    def learned(threads: Threads) -> tuple[list[Any], dict[str, object]]:
        set_threads(threads)
        agent = make_agent(name, problem=problem, precision=precision, torso=torso)
        losses = [agent.update(batch, 100 * number).losses for number, batch in enumerate(batches)]
        return losses, agent.state_dict()

    one_by_one, beside = learned(Threads(1)), learned(Threads(1, passes=2))
    torch.testing.assert_close(beside, one_by_one, rtol=0, atol=0)


def test_threads_share_no_weights_that_autocast_made(
    name: str, make_agent: Callable[..., Any], make_batch: Callable[..., Batch]
) -> None:
    """A pass with gradient would take those that were cast without."""
    agent, kept = make_agent(name, precision="bfloat16"), list[bool]()
    for network in (agent.online, agent.target.network):
        network.register_forward_hook(lambda *_: kept.append(torch.is_autocast_cache_enabled()))
    agent.update(make_batch(rows=16), 100)
    assert len(kept) >= 2 and not any(kept)
