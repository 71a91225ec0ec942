"""How much faster data-efficient Rainbow's update is here than the same network and losses in plain PyTorch.

    python -m benchmarks.der [der|der_paper] [--device cuda|cpu] [--compile none|... ...] [--quick]

First it checks that the losses of both are the same, by the same weights, noise and batches. Contestants by
turns, then: the learner of specs/atari/der.yaml, or of der_paper.yaml, compiled in each of these ways, and
benchmarks/original/rainbow.py with all cores and with one. All learn from the same real frames, which are on
the device before the clock starts. Nothing else should run meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from agents.parts.learning import batch_to_device
from agents.rainbow import RainbowAgent
from benchmarks.gpu import batches_of
from benchmarks.harness import on_device, setting_for, throwaway_server
from benchmarks.original.beside import Twins, compete, parser_of, words_of
from benchmarks.original.networks import noise_in_streams
from benchmarks.original.rainbow import PlainRainbow
from memory.replay.batch import Batch
from models.noisy import draw_noise
from wiring.setting import Setting, build_agent, device_of

RECIPES = ("der", "der_paper")
COMPARED = 3
"""Updates of both programs whose losses are compared before the race."""
TOLERANCE = 1e-3
"""Largest difference of two losses, as a share of the loss: sums are added in other orders, and updates of
both carry that on.
"""


def one_thread(setting: Setting, device: torch.device) -> PlainRainbow:
    """The plain twin without threads that wait for each other, which are slower for a small network."""
    torch.set_num_threads(1)
    return PlainRainbow(setting, device)


PLAIN: Twins = {"plain": PlainRainbow, "plain, one thread": one_thread}


def furthest_apart(setting: Setting, batches: Iterable[Batch]) -> float:
    """Largest difference of a loss of both as a share of it, by the same weights and noise.

    Both learn from each batch before the next one.
    """
    device = device_of(setting.args)
    agent, twin = build_agent(setting.args, setting.problem, learning=True), PlainRainbow(setting, device)
    assert isinstance(agent, RainbowAgent)
    twin.take_weights(agent)
    found: list[Tensor] = []
    for batch in batches:
        generator, state = torch.Generator(), agent.state_dict()["generator"]
        assert isinstance(state, Tensor)
        generator.set_state(state)
        drawn = draw_noise(agent.online.noise_sizes, 3, generator, device)
        draws = [noise_in_streams(drawn, row) for row in range(3)]
        theirs = twin.update(batch_to_device(batch, device), draws)
        found.append(((agent.update(batch, 0).losses - theirs) / theirs).abs().max())
    return float(torch.stack(found).max())


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    parser = parser_of(__doc__)
    parser.add_argument("recipe", nargs="?", choices=RECIPES, default=RECIPES[0])
    options = on_device(parser, argv)
    words = words_of(options, f"--spec specs/atari/{options.recipe}.yaml")
    with throwaway_server() as redis:
        setting = setting_for(f"{words} --precision float32 --compile none")
        apart = furthest_apart(setting, batches_of(redis, setting)[:COMPARED])
        if not apart <= TOLERANCE:
            print(f"error: losses of both differ by {apart:.2g} of a loss.", file=sys.stderr)
            return 1
        print(f"losses of both are the same within {apart:.1g} of a loss")
        compete(redis, options, words, PLAIN)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
