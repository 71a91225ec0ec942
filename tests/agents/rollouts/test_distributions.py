"""The clipped Gaussian: densities inside, probabilities at the bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from agents.base import AgentError, Problem
from agents.parts.distributions import ClippedGaussian, distribution_of

CPU = torch.device("cpu")
BOX = Problem((1, 3), "float32", None, action_low=(-2.0, 0.0), action_high=(2.0, 1.0))
PARAMETERS = torch.tensor([[math.atanh(0.3), math.atanh(-0.9), 0.5, -1.0]])
"""What tanh makes the means 0.3 and -0.9 of, then what softplus makes variances of."""
STD = [math.sqrt(math.log1p(math.exp(raw))) for raw in (0.5, -1.0)]


def normal_cdf(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


def test_draws_have_the_moments_of_a_normal_clipped_to_both_bounds() -> None:
    gaussian, rows = distribution_of(BOX, CPU), 100_000
    noise = gaussian.draw_noise(rows, torch.Generator().manual_seed(0))
    a_t = gaussian.actions(PARAMETERS.expand(rows, -1), noise)
    unit = (a_t - torch.tensor([0.0, 0.5])) / torch.tensor([2.0, 0.5])
    assert gaussian.num_parameters == 4 and a_t.dtype == torch.float32
    for component, mean in enumerate((0.3, -0.9)):
        drawn = unit[:, component].numpy()
        assert drawn.min() == -1 and drawn.max() == 1
        middle = np.abs(drawn - mean) < 0.1  # where nothing is clipped
        expected = normal_cdf(0.1 / STD[component]) - normal_cdf(-0.1 / STD[component])
        assert middle.mean() == pytest.approx(expected, abs=0.01)
        assert (drawn == -1).mean() == pytest.approx(normal_cdf((-1 - mean) / STD[component]), abs=0.01)
        assert (drawn == 1).mean() == pytest.approx(1 - normal_cdf((1 - mean) / STD[component]), abs=0.01)
    means = gaussian.actions(PARAMETERS, gaussian.mean_noise(1))
    torch.testing.assert_close(means, torch.tensor([[0.6, 0.05]]))


@pytest.mark.parametrize("component", [0, 1])
def test_probabilities_add_up_to_one_and_to_the_entropy(component: int) -> None:
    """The integral over the inside, in half ranges, and the sum over both bounds."""
    problem = Problem((1, 3), "float32", None, BOX.action_low[component : component + 1], BOX.action_high[component : component + 1])  # type: ignore[index]  # noqa: E501  # fmt: skip
    gaussian = distribution_of(problem, CPU)
    parameters = PARAMETERS[:, component::2]
    low, high = problem.action_low[0], problem.action_high[0]  # type: ignore[index]
    inside = torch.linspace(low, high, 20_003)[1:-1].unsqueeze(1)
    within = gaussian.evaluate(parameters.expand(len(inside), -1), inside)
    bounds = gaussian.evaluate(parameters.expand(2, -1), torch.tensor([[low], [high]])).log_prob
    density = within.log_prob.exp()
    assert float(density.sum() * 2 / 20_002 + bounds.exp().sum()) == pytest.approx(1.0, abs=1e-3)
    entropy = -(density * within.log_prob).sum() * 2 / 20_002 - (bounds * bounds.exp()).sum()
    assert float(within.entropy[0]) == pytest.approx(float(entropy), abs=1e-3)


def test_the_log_probability_of_the_inside_is_the_normals() -> None:
    gaussian = distribution_of(BOX, CPU)
    statistics = gaussian.evaluate(PARAMETERS, torch.tensor([[1.0, 0.25]]))  # 0.5 and -0.5 in half ranges
    z = [(0.5 - 0.3) / STD[0], (-0.5 + 0.9) / STD[1]]
    density = sum(-(x**2) / 2 - math.log(std * math.sqrt(2 * math.pi)) for x, std in zip(z, STD, strict=True))
    assert float(statistics.log_prob) == pytest.approx(density, rel=1e-5)


def test_entropy_has_an_end_where_nothing_but_the_bounds_is_left() -> None:
    gaussian = distribution_of(BOX, CPU)
    wide = torch.tensor([[0.0, 0.0, 1e8, 1e8]])
    entropy = gaussian.evaluate(wide, torch.tensor([[0.0, 0.5]])).entropy
    assert float(entropy) == pytest.approx(2 * math.log(2), abs=1e-2)


def test_gradients_are_finite_far_beyond_the_bounds() -> None:
    parameters = torch.tensor([[40.0, -40.0, -30.0, -30.0]], requires_grad=True)
    gaussian = distribution_of(BOX, CPU)
    statistics = gaussian.evaluate(parameters, torch.tensor([[-2.0, 1.0]]))
    torch.autograd.backward(statistics.log_prob.sum() + statistics.entropy.sum())
    assert statistics.log_prob.isfinite().all()
    assert parameters.grad is not None and parameters.grad.isfinite().all()


def test_actions_without_bounds_are_refused() -> None:
    endless = Problem((1, 3), "float32", None, action_low=(-math.inf,), action_high=(1.0,))
    with pytest.raises(AgentError, match="needs bounds for each action"):
        distribution_of(endless, CPU)
    assert isinstance(distribution_of(BOX, CPU), ClippedGaussian)
