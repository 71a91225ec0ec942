"""The flags of `python -m wiring.advantage_surface`. Imports nothing heavy."""

from __future__ import annotations

import argparse
from pathlib import Path

from supervision.process import at_least_one

FRAMES = 6
"""Most frames that are drawn where no list of them is given."""


def own_flags() -> argparse.ArgumentParser:
    """A parser of its own flags, which leaves those of test_multiple_seed.py over."""
    parser = argparse.ArgumentParser(
        prog="python -m wiring.advantage_surface",
        description="Advantages of a snapshot's agent around its greedy action, frame by frame.",
        epilog="Takes every flag of test_multiple_seed.py too, of which --model is required."
        " Without --event-log and --images the agent plays an episode from --seed itself.",
        allow_abbrev=False,
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--event-log", type=Path, help="take frames from this event log")
    source.add_argument("--images", type=Path, nargs="+", help="take these pictures for frames")
    parser.add_argument("--frames", type=_numbers, help="steps of the log or the episode, as 10,50,200")
    parser.add_argument(
        "--every",
        type=at_least_one,
        default=25,
        metavar="K",
        help=f"without --frames: every K-th step, {FRAMES} at most (default: 25)",
    )
    parser.add_argument(
        "--dimensions",
        type=_numbers,
        help="components of the action to draw: two, as 0,1, or one (default: the first two)",
    )
    parser.add_argument(
        "--output", type=Path, help="the page (default: advantage_surface_<game>.html in --path-to-results)"
    )
    return parser


def _numbers(text: str) -> list[int]:
    if not all(word.isdecimal() for word in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers as 10,50,200.")
    return [int(word) for word in text.split(",")]
