"""Statistics of an event log, as a few lines of text."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from event_log.reader import read_pieces

MOST_ROWS = 40
"""Rows of a table that a screen shows; more values than these are counted in BINS of equal width."""
BINS = 20


class Outline(NamedTuple):
    """An episode without its frames."""

    number: int
    r_t: NDArray[np.float64]  # [T] raw
    ended: bool  # False for one that was broken off


def read_outlines(path: Path, chosen: Container[int] | None = None) -> list[Outline]:
    """All episodes of a log, or those `chosen` by number. Raises EventLogError when `path` is none."""
    rewards: dict[int, list[NDArray[np.float64]]] = {}
    ended: set[int] = set()
    for piece in read_pieces(path):
        if chosen is None or piece.episode in chosen:
            rewards.setdefault(piece.episode, []).append(piece.r_t.copy())  # a view would keep the frames
            ended.update([piece.episode] if piece.terminated or piece.truncated else [])
    return [Outline(number, np.concatenate(rewards[number]), number in ended) for number in sorted(rewards)]


def summary_text(episodes: Sequence[Outline], per_episode: bool) -> str:
    """Counts, lengths and scores, and how often each reward came, or with `per_episode` each score."""
    whole = [episode for episode in episodes if episode.ended]
    rewards = np.concatenate([np.empty(0), *(episode.r_t for episode in episodes)])
    scores = np.array([episode.r_t.sum() for episode in whole])
    parts = [[f"read {len(episodes)} episodes for a total of {len(rewards)} events"]]
    if whole:
        lengths = np.array([len(episode.r_t) for episode in whole])
        head = f"{'':6}{'mean':>14}{'min':>14}{'max':>14}"
        parts += [[head, _statistics("length", lengths), _statistics("score", scores)]]
    if broken := len(episodes) - len(whole):
        parts += [[f"broken off, and left out of lengths and scores: {broken}"]]
    parts += [_frequencies("score", scores) if per_episode else _frequencies("reward", rewards)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _statistics(name: str, values: NDArray[np.int64] | NDArray[np.float64]) -> str:
    return f"{name:6}{values.mean():14.2f}{values.min():14.10g}{values.max():14.10g}"


def _frequencies(name: str, values: NDArray[np.float64]) -> list[str]:
    """A table of share, count and value, the largest value first; empty where there is no value."""
    found, counts = np.unique(values, return_counts=True)
    labels = [f"{value:8.10g}" for value in found]
    if len(found) > MOST_ROWS:
        counts, edges = np.histogram(values, BINS)
        labels = [f"{low:8.3g} to {high:.3g}" for low, high in zip(edges[:-1], edges[1:], strict=True)]
    rows = [
        f"{count / len(values):8.5f} {count:8d} {label}"
        for count, label in zip(counts.tolist(), labels, strict=True)
    ]
    return [f"{'share':>8} {'count':>8} {name:>8}", *reversed(rows)] if rows else []
