"""The optimiser's step, and its state in snapshots."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from agents.base import AgentError
from agents.parts.learning import GradientStep
from agents.parts.weights import load_state, state_of

ADAM = {"step", "exp_avg", "exp_avg_sq"}


class Parts(nn.Module):
    """Parameters of several shapes, one of which no loss depends on now and then."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        drawn = (nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes)
        self.parts = nn.ParameterList(drawn)

    def loss(self, step: int) -> Tensor:
        used = [part for number, part in enumerate(self.parts) if step % 3 or number != 1]
        return torch.stack([(part - step).square().sum() for part in used]).sum()


def network() -> Parts:
    return Parts((3, 4), (5,), ())


def _moments(step: GradientStep) -> Any:
    return state_of(step.adam)["moments"]


def test_steps_are_adams() -> None:
    """By the paper's algorithm 1, in float64."""
    own = network()
    step = GradientStep(own, lr=1e-2, adam_eps=1e-4, max_grad_norm=0.0)
    expected = [part.detach().double() for part in own.parts]
    mean, square = ([torch.zeros_like(part) for part in expected] for _ in range(2))
    for t in range(1, 6):
        step.take(own.loss(1))
        for m, v, part in zip(mean, square, expected, strict=True):
            gradient = 2 * (part - 1)
            m += 0.1 * (gradient - m)
            v += 0.001 * (gradient**2 - v)
            part -= 1e-2 * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-4)
    for part, wanted in zip(own.parts, expected, strict=True):
        torch.testing.assert_close(part.detach().double(), wanted, rtol=1e-4, atol=1e-5)


def test_a_parameter_without_a_gradient_stays_as_it_is() -> None:
    own = network()
    step = GradientStep(own, 1e-2, 1e-4, 0.0)
    step.take(own.loss(1))
    before = [part.detach().clone() for part in own.parts]
    step.take(own.loss(3))
    assert [torch.equal(part, old) for part, old in zip(own.parts, before, strict=True)] == [
        False,
        True,
        False,
    ]


def test_it_continues_bit_for_bit_from_its_state() -> None:
    own, other = network(), network()
    step, resumed = GradientStep(own, 1e-2, 1e-4, 0.0), GradientStep(other, 1e-2, 1e-4, 0.0)
    for number in range(4):
        step.take(own.loss(number))
    other.load_state_dict(own.state_dict())
    load_state(resumed.adam, state_of(step.adam))
    for number in range(4):
        step.take(own.loss(number))
        resumed.take(other.loss(number))
    assert all(torch.equal(one, two) for one, two in zip(own.parts, other.parts, strict=True))
    assert all(moments.keys() == ADAM for moments in _moments(resumed).values())


def test_moments_of_parameters_that_had_no_gradient_yet_may_be_zero_or_lack() -> None:
    """Snapshots of earlier versions have zeros for them."""
    whole, lacking = network(), network()
    zeros = {name: torch.zeros(5) for name in ("exp_avg", "exp_avg_sq")} | {"step": torch.zeros(())}
    ends = []
    for own, extra in ((whole, {1: zeros}), (lacking, {})):
        step = GradientStep(own, 1e-2, 1e-4, 0.0)
        step.take(own.loss(3))
        resumed = GradientStep(own, 1e-2, 1e-4, 0.0)
        load_state(resumed.adam, {"moments": _moments(step) | extra})
        resumed.take(own.loss(1))
        ends.append(own.state_dict())
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    assert not zeros["step"]  # copies are loaded


@pytest.mark.parametrize("change", ["shape", "exp_avg_sq", "step", "number", "text", "names", "list"])
def test_moments_of_another_network_are_refused(change: str) -> None:
    own = network()
    step = GradientStep(own, 1e-2, 1e-4, 0.0)
    step.take(own.loss(1))
    moments: dict[Any, Any] = dict(_moments(step))
    if change == "shape":
        moments[0] = moments[1]
    elif change in ("exp_avg_sq", "step"):
        moments[0] = {**moments[0], change: torch.zeros(7)}
    elif change == "number":
        moments[3] = moments[2]
    elif change == "text":
        moments["0"] = moments[0]
    elif change == "list":
        moments[0] = list(moments[0].values())
    else:
        moments[0] = {"step": moments[0]["step"]}
    with pytest.raises(AgentError, match="of another network"):
        load_state(step.adam, {"moments": moments})
