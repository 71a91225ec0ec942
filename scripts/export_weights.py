"""Keeps of a snapshot what evaluation and --model need: a small file of weights, without the learner's state.

python -m scripts.export_weights results/last_model_pong_400000.pth results/kept/pong/pong_400000.pth
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import name_missing_packages

    name_missing_packages()

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from args import fail
from learning.saved.snapshot import SnapshotError, load_snapshot, save_snapshot

KEPT = ("settings", "acting_weights", "updates", "t_learner", "t_actors")


def _halved(name: str, weight: Tensor) -> Tensor:
    """Raises ValueError where that makes a number infinite."""
    half = weight.half() if weight.dtype == torch.float32 else weight
    if (half.isinf() & weight.isfinite()).any():
        raise ValueError(f"{name} has weights beyond 65,504, the largest of float16: leave --float16 out.")
    return half


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Keep the weights of a snapshot, and where they come from.")
    parser.add_argument("snapshot", type=Path)
    parser.add_argument("weights", type=Path, help="the file to write")
    parser.add_argument("--float16", action="store_true", help="round to half the bytes: evaluate that file")
    words = parser.parse_args(argv)
    if words.weights.resolve() == words.snapshot.resolve():
        parser.error(f"{words.weights} is the snapshot itself, whose learner's state would be lost.")
    try:
        snapshot = load_snapshot(words.snapshot)
        kept = {name: snapshot[name] for name in KEPT}
        if words.float16:
            weights = kept["acting_weights"].items()
            kept["acting_weights"] = {name: _halved(name, each) for name, each in weights}
        save_snapshot(words.weights, kept)
    except (SnapshotError, ValueError) as error:
        fail(error)
    except OSError as error:
        fail(OSError(f"{words.weights} cannot be written: {error.strerror}."))
    print(f"Saved {words.weights} ({words.weights.stat().st_size / 1e6:.1f} MB).")


if __name__ == "__main__":
    main()
