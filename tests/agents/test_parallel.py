"""Passes at the same time compute what they compute one after the other."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
import torch
from numpy.typing import NDArray
from pytest import MonkeyPatch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from agents import Agent
from agents.parts.parallel import Threads, beside, in_parallel, set_threads
from memory.replay.batch import Batch
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


def test_works_run_in_order_and_end_with_the_block() -> None:
    """What begins later may use what began before."""
    done = list[str]()

    def first() -> str:
        threading.Event().wait(0.05)
        done.append("first")
        return "its result"

    with beside() as begin:
        one = begin(first)
        two = begin(lambda: list(done))
        three = begin(lambda: one())
        assert not done
    assert done == two() == ["first"] and three() == "its result"


def test_a_child_that_was_forked_does_its_own_passes() -> None:
    """Its parent's thread is not there."""
    in_parallel(int, int)
    child = multiprocessing.get_context("fork").Process(target=in_parallel, args=(int, int))
    child.start()
    child.join(PATIENCE_S)
    if child.is_alive():
        child.kill()
    assert child.exitcode == 0


def test_a_block_that_fails_waits_for_what_it_began() -> None:
    ended = threading.Event()

    def work() -> None:
        threading.Event().wait(0.05)
        ended.set()

    with pytest.raises(ValueError, match="the block's"), beside() as begin:
        begin(work)
        raise ValueError("the block's")
    assert ended.is_set()


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


class Recording(TorchFunctionMode):
    """Keeps the tensors that require gradients, of all that operations are called with."""

    def __init__(self) -> None:
        super().__init__()
        self.operations, self.recorded = 0, list[Tensor]()

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.operations += 1
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        self.recorded += [tensor for tensor in inputs if tensor.requires_grad]
        return function(*args, **(kwargs or {}))


def test_the_second_thread_takes_none_of_the_tensors_that_the_first_records(
    name: str, make_agent: Callable[..., Agent], make_batch: Callable[..., Batch], monkeypatch: MonkeyPatch
) -> None:
    """PyTorch's lock of such a tensor and Python's own are taken in both orders: the threads would stop."""
    mode = Recording()

    class InThisThread:
        def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
            done: Future[Any] = Future()
            with mode:
                done.set_result(work(*arguments))
            return done

    monkeypatch.setattr("agents.parts.parallel._other_thread", InThisThread)
    make_agent(name).update(make_batch(rows=16), 100)
    assert mode.operations > 0 and not mode.recorded


@pytest.mark.parametrize("name", ["iqn", "rainbow"])
def test_two_threads_have_as_much_to_do(
    make_agent: Callable[..., Any], make_batch: Callable[..., Batch], name: str
) -> None:
    """The second goes over s_t with both torsos and the target's head, the first chooses the action there."""
    agent, threads = make_agent(name), dict[nn.Module, int]()
    heads = [network.head.advantage for network in (agent.chooser, agent.target.network)]
    for part in (agent.chooser.torso, agent.target.network.torso, *heads):
        part.register_forward_hook(lambda part, *_: threads.update({part: threading.get_ident()}))
    agent.update(make_batch(rows=16), 100)
    assert len(threads) == 4
    assert [part for part, thread in threads.items() if thread == threading.get_ident()] == heads[:1]


def test_actions_are_chosen_by_the_weights_of_now(
    name: str, make_agent: Callable[..., Any], make_batch: Callable[..., Batch]
) -> None:
    """After an update, a snapshot, published weights: in the same memory, buffers too."""
    agent, other = make_agent(name), make_agent(name, seed=8)
    batch, state, weights = make_batch(rows=16), other.state_dict(), other.acting_weights()
    changes: list[Callable[[], object]] = [
        lambda: agent.update(batch, 100),
        lambda: agent.load_state_dict(state),
        lambda: agent.update(batch, 200),
        lambda: agent.load_acting_weights(weights),
    ]
    for change in changes:
        change()
        assert of_memory(agent.chooser) == of_memory(agent.online)


def of_memory(network: nn.Module) -> dict[str, int]:
    """Addresses of all weights; buffers that are not kept with them included."""
    tensors = (*network.named_parameters(), *network.named_buffers())
    return {name: tensor.data_ptr() for name, tensor in tensors}


def test_threads_share_no_weights_that_autocast_made(
    name: str, make_agent: Callable[..., Any], make_batch: Callable[..., Batch]
) -> None:
    """A pass with gradient would take those that were cast without."""
    agent, kept = make_agent(name, precision="bfloat16"), list[bool]()
    for network in (agent.online, agent.chooser, agent.target.network):
        network.register_forward_hook(lambda *_: kept.append(torch.is_autocast_cache_enabled()))
    agent.update(make_batch(rows=16), 100)
    assert len(kept) >= 2 and not any(kept)
