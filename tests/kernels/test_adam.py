"""Adam without torch.compile: the same numbers, and nothing of the compiler is imported."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch import nn

from agents.parts.learning import GradientStep
from kernels.adam import Adam
from tests.processes import ROOT

LEARN = """
import sys, torch
from agents.parts.learning import GradientStep
from agents.parts.weights import load_state, state_of
steps = [GradientStep(torch.nn.Linear(3, 2), 1e-2, 1e-4, 1.0) for _ in range(2)]
for step in steps:
    step.take(sum(each.square().sum() for each in step._parameters))
load_state(steps[1].adam, state_of(steps[0].adam))
sys.exit("torch._dynamo" in sys.modules)
"""


def test_it_is_pytorchs_bit_for_bit() -> None:
    """Through a state as well; a gradient of None leaves a parameter alone."""
    torch.manual_seed(1)
    inputs = torch.randn(8, 6, 5)
    ends, states = [], []
    for make in (Adam, torch.optim.Adam):
        torch.manual_seed(2)
        network = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))
        adam = make(network.parameters(), lr=1e-2, eps=1e-4, fused=True)
        for number, rows in enumerate(inputs):
            if number == 4:
                state = adam.state_dict()
                adam = make(network.parameters(), lr=1e-3, eps=1e-4, fused=True)
                adam.load_state_dict(state)
            adam.zero_grad()
            network(rows).square().mean().backward()
            if number == 3:
                network[0].bias.grad = None
            adam.step()
        ends.append([parameter.detach() for parameter in network.parameters()])
        states.append([value for of_one in adam.state_dict()["state"].values() for value in of_one.values()])
    for one, two in (ends, states):
        assert len(one) == len(two) and all(map(torch.equal, one, two))


def test_learning_imports_no_compiler() -> None:
    """Steps and states: the first of them would import 900 modules."""
    assert subprocess.run([sys.executable, "-c", LEARN], cwd=ROOT).returncode == 0


def test_it_makes_no_marks_for_the_profiler() -> None:
    """Which take 7 % of a small network's update, with those of its gradients."""
    layer = nn.Linear(2, 1)
    step = GradientStep(layer, lr=0.001, adam_eps=1e-8, max_grad_norm=0.0)
    with torch.profiler.profile() as profile:
        step.take(layer(torch.ones(1, 2)).sum())
    assert not any("Optimizer" in event.key for event in profile.key_averages())
