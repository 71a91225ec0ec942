"""--compile cuda-graphs: an update that is replayed as a CUDA graph is the update that is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from agents.parts import devices, off_policy
from agents.parts.learning import batch_to_device
from kernels import cuda_graph
from kernels.cuda_graph import CudaGraph, tensors_in
from memory.replay.batch import Batch
from tests.agents.conftest import PROBLEMS

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
def test_recording_leaves_buffers_and_results_of_other_shapes_alone() -> None:
    """The buffer counts calls: those that warm up do not count. Earlier results stay as they were."""
    calls = torch.zeros((), device="cuda")

    def counted(x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return x + calls.add_(1), {"double": 2 * x}

    graph = CudaGraph(counted, [calls], calls.device)
    results = [graph(torch.full((size,), 10.0, device="cuda")) for size in (2, 2, 3)]
    assert [float(own[0]) for own, _ in results] == [11, 12, 13]
    assert [tuple(named["double"].shape) for _, named in results] == [(2,), (2,), (3,)]


@needs_cuda
def test_what_waits_for_the_device_runs_as_written(caplog: pytest.LogCaptureFixture) -> None:
    """It leaves neither the stream of the recording behind, nor a buffer that the calls before it changed."""
    device, calls = torch.device("cuda", 0), torch.zeros((), device="cuda")

    def waits(x: Tensor) -> Tensor:
        calls.add_(1)
        return x * float(x.sum())

    graph = CudaGraph(waits, [calls], device)
    for size in (1, 2):
        assert torch.equal(graph(torch.ones(size, device=device)).cpu(), torch.full((size,), float(size)))
    assert int(calls) == 2 and torch.cuda.current_stream() == torch.cuda.default_stream()
    (sentence,) = [record.message for record in caplog.records if record.name == cuda_graph.log.name]
    assert sentence.startswith("No CUDA graph was recorded, and updates run as they are written: ")
    assert "previous error" not in sentence


class Recorded(CudaGraph[Any]):
    """A CudaGraph whose launches are calls on the CPU: everything but the recording itself."""

    recordings = 0

    def _record(self, inputs: Any) -> None:
        self.recordings += 1
        self._inputs = cuda_graph._copied(inputs)
        self._result = self._function(*self._inputs)
        self._graph = self  # type: ignore[assignment]

    def replay(self) -> None:
        for own, new in zip(tensors_in(self._result), tensors_in(self._function(*self._inputs)), strict=True):
            own.copy_(new)


def doubled(x: Tensor, named: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    return 2 * x, {"sum": x + named["y"]}


def test_a_replay_is_of_what_is_given_now_and_leaves_earlier_results_alone() -> None:
    """Recorded anew for another shape or type, and only then."""
    graph = Recorded(doubled, [], torch.device("cpu"))
    cases = [
        torch.full((size,), value, dtype=dtype)
        for size, value, dtype in (
            (2, 1.0, torch.float32),
            (2, 5.0, torch.float32),
            (3, 7.0, torch.float32),
            (3, 9.0, torch.float64),
        )
    ]
    results = [graph(x, {"y": x + 1}) for x in cases]
    for x, (twice, named) in zip(cases, results, strict=True):
        assert torch.equal(twice, 2 * x) and torch.equal(named["sum"], 2 * x + 1)
    assert graph.recordings == 3 and not graph.gave_up


@pytest.mark.parametrize(
    ("error", "reason"), [(RuntimeError("Busy.\nMore."), "Busy"), (RuntimeError(), "RuntimeError")]
)
def test_what_cannot_be_recorded_is_tried_once(
    error: RuntimeError, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has what ended the recording, not that it is over."""

    class Unrecordable(Recorded):
        def _record(self, inputs: Any) -> None:
            self.recordings += 1
            try:
                raise error
            except RuntimeError:
                if str(error):
                    raise RuntimeError("Failed due to a previous error.")  # noqa: B904 (as torch.cuda.graph does)
                raise

    graph = Unrecordable(doubled, [], torch.device("cpu"))
    for x in (torch.ones(2), torch.ones(3)):
        assert torch.equal(graph(x, {"y": x})[0], 2 * x)
    assert graph.gave_up and graph.recordings == 1
    assert [record.message for record in caplog.records] == [
        f"No CUDA graph was recorded, and updates run as they are written: {reason}."
    ]


def test_tensors_are_found_in_their_order() -> None:
    one, two, three = torch.arange(3)
    assert [int(each) for each in tensors_in((one, {"b": two}, [(three,)]))] == [0, 1, 2]


PURE = ["dqn", "double_dqn", "iqn", "rainbow"]


@pytest.mark.parametrize("name", PURE)
def test_on_a_cpu_updates_are_not_recorded(name: str, make_agent: Callable[..., Any]) -> None:
    assert not isinstance(make_agent(name, compile="cuda-graphs")._gradients, CudaGraph)


@pytest.mark.parametrize("name", [*PURE, "naf"])
def test_an_agent_is_recorded_where_its_own_class_says_that_it_can_be(
    name: str, make_agent: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """NAF draws at random within its losses; whoever inherits from one of the others may as well."""
    asked: list[bool] = []

    def recorded(derive: Callable[..., Any], is_pure: bool, *_: Any) -> Callable[..., Any]:
        asked.append(is_pure)
        return derive

    monkeypatch.setattr(off_policy, "recorded", recorded)
    agent = make_agent(name)

    class Heir(type(agent)):  # type: ignore[misc]
        pass

    Heir(PROBLEMS[name], agent.config, agent.device, 1, True)
    assert asked == [name in PURE, False]


def test_who_cannot_be_recorded_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    cuda = torch.device("cuda")
    assert devices.recorded(doubled, False, "cuda-graphs", cuda) is doubled
    assert "No CUDA graph is recorded" in caplog.text
    assert devices.recorded(doubled, True, "default", cuda) is doubled
    assert isinstance(devices.recorded(doubled, True, "cuda-graphs", cuda), CudaGraph)


@pytest.mark.parametrize("name", PURE)
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
