"""How much faster BTR's update is here than the same network and losses written plainly in PyTorch.

    python -m benchmarks.btr [--device cuda|cpu] [--compile none|default|cuda-graphs ...] [--quick]

Contestants by turns: the learner of specs/atari/btr.yaml, compiled in each of these ways, and
benchmarks/original/btr.py in bfloat16 and in float32. All learn from the same real frames, which are on the
device before the clock starts. Nothing else should run meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import torch

from benchmarks.harness import on_device, throwaway_server
from benchmarks.original.beside import Twins, compete, parser_of, words_of
from benchmarks.original.btr import PlainBtr

SPEC = "--spec specs/atari/btr.yaml --game space_invaders"
PLAIN: Twins = {
    "plain bfloat16": partial(PlainBtr, dtype=torch.bfloat16),
    "plain float32": partial(PlainBtr, dtype=torch.float32),
}


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    options = on_device(parser_of(__doc__), argv)
    with throwaway_server() as redis:
        compete(redis, options, words_of(options, SPEC), PLAIN)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
