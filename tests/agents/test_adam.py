"""Our Adam is PyTorch's, and does not load what a learner has no use for."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

from agents.base import AgentError
from agents.parts.adam import Adam
from tests.processes import ROOT

SHAPES = (3, 4), (5,), ()


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def gradients(step: int) -> list[Tensor | None]:
    """From now and then one for all but the second parameter."""
    generator = torch.Generator().manual_seed(step)
    drawn: list[Tensor | None] = [torch.randn(shape, generator=generator) for shape in SHAPES]
    return drawn if step % 3 else [drawn[0], None, drawn[2]]


def lay(step: int, own: list[nn.Parameter]) -> None:
    for parameter, gradient in zip(own, gradients(step), strict=True):
        parameter.grad = gradient


def test_steps_are_those_of_torch_optim() -> None:
    own, others = parameters(), parameters()
    ours, theirs = Adam(own, 1e-2, 1e-4), torch.optim.Adam(others, lr=1e-2, eps=1e-4, fused=True)
    for step in range(10):
        lay(step, own)
        lay(step, others)
        ours.step()
        theirs.step()
        assert all(torch.equal(left, right) for left, right in zip(own, others, strict=True))
    state = theirs.state_dict()["state"]
    for number, moments in ours.state_dict().items():
        assert all(torch.equal(tensor, state[number][name]) for name, tensor in moments.items())
        assert moments.keys() == state[number].keys()


def test_forgotten_gradients_are_no_step() -> None:
    own = parameters()
    lay(1, own)
    ours = Adam(own, 1e-2, 1e-4)
    ours.forget_gradients()
    ours.step()
    assert [parameter.grad for parameter in own] == [None] * len(own)
    assert all(torch.equal(left, right) for left, right in zip(own, parameters(), strict=True))


def test_what_is_loaded_replaces_all_moments() -> None:
    own = parameters()
    ours = Adam(own, 1e-2, 1e-4)
    lay(1, own)
    ours.step()
    first = {name: tensor.clone() for name, tensor in ours.state_dict()[0].items()}
    ours.load_state_dict({0: first})  # the others had no gradient yet
    loaded = ours.state_dict()
    assert all(torch.equal(tensor, first[name]) for name, tensor in loaded[0].items())
    assert all(not tensor.any() for number in (1, 2) for tensor in loaded[number].values())
    lay(2, own)
    ours.step()
    assert first["step"] == 1  # a copy was loaded


def test_moments_of_other_shapes_are_refused() -> None:
    ours, other = Adam(parameters(), 1e-2, 1e-4), Adam(reversed(parameters()), 1e-2, 1e-4)
    with pytest.raises(AgentError, match="of another network"):
        ours.load_state_dict(other.state_dict())


def test_a_learner_starts_without_pytorchs_compiler() -> None:
    """It takes a second to load."""
    program = (
        "import sys, launch_learner\n"
        "from benchmarks.play import setting_for\n"
        "from wiring import build_agent\n"
        "setting = setting_for('--game probe:catch --torso mlp --disable-cuda')\n"
        "agent = build_agent(setting.args, setting.problem, learning=True)\n"
        "agent._gradient_step.take(sum(part.sum() for part in agent.online.parameters()))\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["False"]
