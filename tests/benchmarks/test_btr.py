"""The plain twin of BTR does the same work: its losses and gradients are ours."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
import torch

from agents.iqn import IqnAgent
from agents.parts.learning import batch_to_device
from benchmarks.btr import SPEC, main
from benchmarks.harness import Road, record, setting_for
from benchmarks.original.btr import PlainBtr
from benchmarks.original.networks import in_streams
from memory.server.connection import Client
from tests.benchmarks.test_original import draws_to_come
from wiring.setting import build_agent

CPU = torch.device("cpu")
TINY = "--hidden-size 32 --noisy-epsilon-steps 0 --memory-capacity 1024 --learn-start 32 --batch-size 8"
SMALL = f"{SPEC} --disable-cuda --precision float32 {TINY}"


@pytest.mark.slow
def test_the_plain_losses_are_ours(client: Client) -> None:
    """With the same weights, singular vectors, taus and noise, before and after updates of both."""
    setting = setting_for(SMALL)
    agent, plain = (
        build_agent(setting.args, setting.problem, learning=True),
        PlainBtr(setting, CPU, torch.float32),
    )
    assert isinstance(agent, IqnAgent)
    _take_weights(plain, agent)
    with closing(Road(setting, client, environments=4)) as road:
        road.push(record(setting, environments=4, steps=64))
        road.replay.ingest()
        for _ in range(3):
            batch = road.replay.sample(8, 0.4)
            drawn = draws_to_come(agent, 8)[1:]  # nothing is selected
            theirs = plain.update(batch_to_device(batch, CPU), drawn)
            ours = agent.update(batch, 0)
            torch.testing.assert_close(ours.losses, theirs, rtol=1e-3, atol=1e-5)


def _take_weights(plain: PlainBtr, agent: IqnAgent) -> None:
    own: dict[str, Any] = agent.online.state_dict()
    renamed = {
        _plain_name(name, f"{name.rpartition('.')[0]}.u" in own): value
        for name, value in in_streams(own, agent.config.hidden_size).items()
    }
    for network in (plain.online, plain.target):
        result = network.load_state_dict(renamed, strict=False)
        assert not result.unexpected_keys and all("epsilon" in name for name in result.missing_keys)


def _plain_name(name: str, normalised: bool) -> str:
    """Of ours, in the plain network; PyTorch keeps a normalised weight under names of its own."""
    name = name.replace("torso.layers", "convolutions")
    name = name.replace(".layers.1.", ".first.").replace(".layers.3.", ".second.")
    if not normalised:
        return name
    module, _, kind = name.rpartition(".")
    ends = {"weight": "parametrizations.weight.original", "u": "parametrizations.weight.0._u"}
    ends["v"] = "parametrizations.weight.0._v"
    return f"{module}.{ends.get(kind, kind)}"


def test_the_plain_network_has_btrs_size() -> None:
    """5,278,918 weights at 18 actions, as BTR's."""
    setting = setting_for(SPEC)
    plain = PlainBtr(setting, CPU, torch.float32)
    assert setting.problem.num_actions == 18
    assert sum(parameter.numel() for parameter in plain.online.parameters()) == 5_278_918


@pytest.mark.slow
def test_it_races_on_a_processor_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Small and short; a way that needs a GPU is left out with a line."""
    flags = "--hidden-size 16 --batch-size 4 --memory-capacity 8192 --learn-start 64"
    ways = ["--compile", "none", "cuda-graphs"]
    assert main(["--device", "cpu", "--quick", *ways, f"--flags={flags}"]) == 0
    said = capsys.readouterr().out
    assert "plain bfloat16: " in said and "ours, none / plain float32: " in said
    assert "ours, cuda-graphs: does not work here" in said and "ours, cuda-graphs / " not in said


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "finds no CUDA device here" in capsys.readouterr().err
