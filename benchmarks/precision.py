"""How far bfloat16 is from float32 in what is learned: the same batches, weights, taus and noise for both.

    python -m benchmarks.precision [--batches 100] [--spec FILE] [--model SNAPSHOT] [--json FILE]

The batches are of random play, drawn through the replay, and the same for the same seed. A learner in float32
learns from one after the other; before each, one in bfloat16 takes its state, and both do that update.
Exit code 1 where a batch's loss or gradient differs by more than the bounds below.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from torch import Tensor

from agents.parts.off_policy import OffPolicyAgent
from benchmarks.harness import median_range, recorded_batches, setting_for, throwaway_server
from benchmarks.report import write_document
from learning.saved.snapshot import load_snapshot
from memory.replay.batch import Batch
from memory.server.connection import make_client
from wiring.setting import build_agent, set_up_torch

SPEC = "specs/atari/rainbow_iqn_cpu.yaml"
LARGEST_LOSS_ERROR = 0.01
"""Largest difference of the loss in bfloat16 from that in float32, as a share of the latter."""
LEAST_COSINE = 0.999
"""Least cosine between the gradients in bfloat16 and float32, all parameters taken together."""

Learner = OffPolicyAgent[Any, Any, Any]


class Difference(NamedTuple):
    """How an update in bfloat16 differs from the same one in float32."""

    loss: float  # |bfloat16 - float32| / float32, of the batch's mean loss
    cosine: float  # between the gradients, all parameters in one vector
    by_parameter: dict[str, float]  # the same, parameter by parameter

    @property
    def is_small(self) -> bool:
        """Whether both are within their bounds."""
        return self.loss <= LARGEST_LOSS_ERROR and self.cosine >= LEAST_COSINE


def differences(words: str, batches: Sequence[Batch], model: Path | None = None) -> Iterator[Difference]:
    """The differences of successive updates, from new weights or a snapshot's; `words`: the run's flags."""
    exact, quick = (_learner(f"{words} --precision {name}") for name in ("float32", "bfloat16"))
    if model is not None:
        exact.load_acting_weights(load_snapshot(model)["acting_weights"])
    for number, batch in enumerate(batches):
        quick.load_state_dict(exact.state_dict())
        t_learner = exact.config.replay_frequency * number
        losses = [float(learner.update(batch, t_learner).metrics["loss"]) for learner in (exact, quick)]
        yield _difference(losses, _gradients(exact), _gradients(quick))


def _learner(words: str) -> Learner:
    setting = setting_for(words)
    agent = build_agent(setting.args, setting.problem, learning=True)
    set_up_torch(setting.args, agent)
    assert isinstance(agent, OffPolicyAgent)
    return agent


def _gradients(learner: Learner) -> dict[str, Tensor]:
    return {
        name: parameter.grad.flatten()
        for name, parameter in learner.online.named_parameters()
        if parameter.grad is not None
    }


def _difference(losses: Sequence[float], exact: dict[str, Tensor], quick: dict[str, Tensor]) -> Difference:
    cosines = {name: _cosine(exact[name], quick[name]) for name in exact}
    whole = _cosine(torch.cat([*exact.values()]), torch.cat([quick[name] for name in exact]))
    return Difference(abs(losses[1] - losses[0]) / losses[0], whole, cosines)


def _cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.cosine_similarity(one.double(), other.double(), dim=0))


def show(found: Sequence[Difference]) -> None:
    """Median and extremes, then the parameters from the worst on."""
    print_line = Console(width=110).print
    losses, cosines = median_range(each.loss for each in found), median_range(each.cosine for each in found)
    print_line(f"{len(found)} batches, {sum(each.is_small for each in found)} of them within both bounds")
    print_line(f"loss: median {losses.median:.2%}, largest {losses.high:.2%} of {LARGEST_LOSS_ERROR:.0%}")
    print_line(f"cosine: median {cosines.median:.6f}, least {cosines.low:.6f} of {LEAST_COSINE}")
    for name, cosine in by_parameter(found).items():
        print_line(f"  {name:32} median {cosine:.6f}")


def by_parameter(found: Sequence[Difference]) -> dict[str, float]:
    """The median cosine of every parameter's gradients, from the least on."""
    medians = {
        name: statistics.median(each.by_parameter[name] for each in found) for name in found[0].by_parameter
    }
    return dict(sorted(medians.items(), key=lambda item: item[1]))


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="How far bfloat16 is from float32 in what is learned.")
    parser.add_argument("--batches", type=int, default=100, help="updates to compare")
    parser.add_argument("--spec", default=SPEC, help="of a replay agent on an ALE game")
    parser.add_argument("--flags", default="", help="further flags of a launcher, in quotes")
    parser.add_argument("--model", type=Path, help="begin with this snapshot's weights")
    parser.add_argument("--json", type=Path, help="write all differences to this file")
    parser.add_argument("--seed", type=int, default=123, help="of play, draws and weights")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    options = parsed(argv)
    words = f"--spec {options.spec} --seed {options.seed} {options.flags}"
    with throwaway_server() as redis:
        batches = recorded_batches(setting_for(words), make_client(redis), options.batches, 16, 256)
    found = list(differences(words, batches, options.model))
    show(found)
    if options.json:
        command = ["benchmarks/precision.py", *argv]
        write_document(options.json, command, batches=[each._asdict() for each in found])
    return 0 if all(each.is_small for each in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
