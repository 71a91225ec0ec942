"""Compiled forward passes give what written ones give; what cannot be compiled runs as it is written.

torch.compile is told to trace but not to generate code ("aot_eager"): that would take most of a minute here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from agents.base import Agent
from agents.parts import devices
from agents.parts.devices import ForwardPasses
from memory.replay.batch import Batch

CPU = torch.device("cpu")
BTR = {"torso": "impala_x2_spectral", "munchausen": "online"}
LINE = torch.nn.Linear(3, 2)


@pytest.mark.parametrize(
    ("name", "precision", "settings"),
    [
        pytest.param("iqn", "bfloat16", {}, marks=pytest.mark.slow),
        ("dqn", "float32", {}),
        pytest.param("iqn", "float32", BTR, marks=pytest.mark.slow),
    ],
)
def test_compiled_updates_are_those_of_written_passes(
    name: str,
    precision: str,
    settings: Mapping[str, Any],
    make_agent: Callable[..., Any],
    make_batch: Callable[..., Batch],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Noisy layers, a target network that is copied, autocast; each continues from a state of the other."""
    monkeypatch.setattr(devices, "BACKEND", "aot_eager")
    flags = {"precision": precision, "target_update": 8, **settings}
    written, compiled = make_agent(name, **flags), make_agent(name, compile="default", **flags)
    for step in range(6):
        if step == 3:
            _swap_states(written, compiled)
        losses = [agent.update(make_batch(seed=step), 4 * step).losses for agent in (written, compiled)]
        torch.testing.assert_close(*losses, rtol=2e-3, atol=2e-3 if precision == "bfloat16" else 1e-5)
    assert _said(caplog) == []  # nothing was given up
    assert written.acting_weights().keys() == compiled.acting_weights().keys()


def _swap_states(one: Agent, other: Agent) -> None:
    states = one.state_dict(), other.state_dict()
    one.load_state_dict(states[1])
    other.load_state_dict(states[0])


def _said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """torch.compile logs much besides."""
    return [record.message for record in caplog.records if record.name == devices.log.name]


def test_what_cannot_be_compiled_goes_on_as_written(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(devices, "BACKEND", "no such compiler")
    run = ForwardPasses("default", CPU)
    for rows in (1, 2):
        assert torch.equal(run(LINE, torch.ones(rows, 3)), LINE(torch.ones(rows, 3)))
    (sentence,) = _said(caplog)
    assert sentence.startswith("Forward passes are not compiled, and run as they are written: ")
    assert "no such compiler" in sentence


def test_cuda_graphs_need_cuda(caplog: pytest.LogCaptureFixture) -> None:
    run = ForwardPasses("cuda-graphs", CPU)
    assert torch.equal(run(LINE, torch.ones(1, 3)), LINE(torch.ones(1, 3)))
    assert [sentence.split(": ")[1] for sentence in _said(caplog)] == ["CUDA graphs need a CUDA device."]
