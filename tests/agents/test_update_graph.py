"""--compile cuda-graphs: an update that is replayed as a CUDA graph is the update that is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from agents.parts import devices
from agents.parts.off_policy import batch_to_device
from kernels import cuda_graph
from kernels.cuda_graph import CudaGraph, tensors_in
from memory.replay.batch import Batch

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
BTR = {"torso": "impala_x2_spectral", "munchausen": "online", "max_grad_norm": 10.0, "lr_end": 0.0}


@needs_cuda
@pytest.mark.parametrize(
    ("name", "settings"), [("iqn", {}), ("iqn", BTR), ("rainbow", {}), ("double_dqn", {})]
)
def test_replayed_updates_are_the_written_ones(
    name: str,
    settings: Mapping[str, Any],
    make_agent: Callable[..., Any],
    make_batch: Callable[..., Batch],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other noise in every update, a target network that is copied; each continues from the other's state."""
    monkeypatch.setattr(devices, "BACKEND", "aot_eager")
    monkeypatch.setattr(
        torch.backends.cudnn, "allow_tf32", False
    )  # its rounding, divided by Munchausen's 0.03
    written, replayed = (
        make_agent(name, device="cuda", compile=how, target_update=8, **settings)
        for how in ("none", "cuda-graphs")
    )
    assert isinstance(replayed._gradients, CudaGraph)
    for step in range(6):
        if step == 3:
            states = written.state_dict(), replayed.state_dict()
            written.load_state_dict(states[1])
            replayed.load_state_dict(states[0])
        one, other = (agent.update(make_batch(seed=step), 4 * step) for agent in (written, replayed))
        torch.testing.assert_close(one.losses, other.losses, rtol=2e-3, atol=1e-4)
        for metric in one.metrics:
            torch.testing.assert_close(one.metrics[metric], other.metrics[metric], rtol=5e-3, atol=1e-4)
    assert replayed._gradients._graph is not None


@needs_cuda
def test_naf_draws_within_its_losses_and_is_not_recorded(make_agent: Callable[..., Any]) -> None:
    assert not isinstance(make_agent("naf", device="cuda", compile="cuda-graphs")._gradients, CudaGraph)


@needs_cuda
def test_recording_leaves_buffers_and_results_of_other_shapes_alone() -> None:
    """The buffer counts calls: those that warm up do not count. Earlier results stay as they were."""
    calls = torch.zeros((), device="cuda")

    def counted(x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return x + calls.add_(1), {"double": 2 * x}

    graph = CudaGraph(counted, [calls])
    results = [graph(torch.full((size,), 10.0, device="cuda")) for size in (2, 2, 3)]
    assert [float(own[0]) for own, _ in results] == [11, 12, 13]
    assert [tuple(named["double"].shape) for _, named in results] == [(2,), (2,), (3,)]


@needs_cuda
def test_what_waits_for_the_device_runs_as_written(caplog: pytest.LogCaptureFixture) -> None:
    graph = CudaGraph(lambda x: x * float(x.sum()), [])
    for size in (1, 2):
        assert torch.equal(graph(torch.ones(size, device="cuda")).cpu(), torch.full((size,), float(size)))
    (sentence,) = [record.message for record in caplog.records if record.name == cuda_graph.log.name]
    assert sentence.startswith("No CUDA graph was recorded, and updates run as they are written: ")


def test_tensors_are_found_in_their_order() -> None:
    one, two, three = torch.arange(3)
    assert [int(each) for each in tensors_in((one, {"b": two}, [(three,)]))] == [0, 1, 2]


@pytest.mark.parametrize("name", ["iqn", "rainbow", "double_dqn"])
def test_on_a_cpu_updates_are_not_recorded(name: str, make_agent: Callable[..., Any]) -> None:
    assert not isinstance(make_agent(name, compile="cuda-graphs")._gradients, CudaGraph)


@pytest.mark.parametrize("name", ["iqn", "rainbow", "double_dqn"])
def test_losses_follow_from_what_they_are_given(
    name: str, make_agent: Callable[..., Any], make_batch: Callable[..., Batch]
) -> None:
    """They draw nothing: a graph would repeat it for ever."""
    agent = make_agent(name)
    tensors, draws = batch_to_device(make_batch(), agent.device), agent._draws(8)
    generators = agent.state_dict()["generator"], torch.get_rng_state()
    first, again = agent._losses(tensors, *draws), agent._losses(tensors, *draws)
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert torch.equal(generators[0], agent.state_dict()["generator"])
    assert torch.equal(generators[1], torch.get_rng_state())
