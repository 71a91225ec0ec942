"""The plain twin of data-efficient Rainbow does the same work: its losses and gradients are ours."""

from __future__ import annotations

import pytest
import torch

from benchmarks import der
from benchmarks.der import PLAIN, RECIPES, TOLERANCE, furthest_apart, main
from benchmarks.harness import recorded_batches, setting_for
from benchmarks.original.rainbow import PlainRainbow
from memory.server.connection import Client
from wiring.setting import build_agent

TINY = "--hidden-size 16 --batch-size 4 --memory-capacity 8192 --learn-start 32"


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_plain_losses_are_ours(client: Client, recipe: str) -> None:
    """With the same weights, noise and batches, before and after updates of both."""
    setting = setting_for(f"--spec specs/atari/{recipe}.yaml --disable-cuda --max-grad-norm 0.01 {TINY}")
    batches = recorded_batches(setting, client, 2, environments=4, steps=64)
    assert furthest_apart(setting, batches) <= TOLERANCE


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_plain_network_has_as_many_weights(recipe: str) -> None:
    setting = setting_for(f"--spec specs/atari/{recipe}.yaml --disable-cuda")
    agent, plain = (
        build_agent(setting.args, setting.problem, False),
        PlainRainbow(setting, torch.device("cpu")),
    )
    ours = {name: weight for name, weight in agent.acting_weights().items() if name != "epsilon"}
    own = sum(parameter.numel() for parameter in plain.online.parameters())
    assert own == sum(weight.numel() for weight in ours.values())


def test_other_losses_are_not_raced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A twin of another network says so, exit code 1."""
    monkeypatch.setattr(der, "furthest_apart", lambda *_: float("nan"))
    monkeypatch.setattr(der, "batches_of", lambda *_: [])
    assert main(["--device", "cpu"]) == 1
    assert capsys.readouterr().err == "error: losses of both differ by nan of a loss.\n"


@pytest.mark.slow
def test_it_races_on_a_processor(capsys: pytest.CaptureFixture[str]) -> None:
    """Small and short."""
    assert main(["der_paper", "--device", "cpu", "--quick", f"--flags={TINY}"]) == 0
    said = capsys.readouterr().out
    assert all(f"{name}: " in said and f"ours, none / {name}: " in said for name in PLAIN)
    assert "losses of both are the same within" in said and " h for " in said
