"""What a trial has come to by a number of agent steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lab.session_result import SessionResult, fitness_of
from reporting.trials import Curve


def as_of(results: Sequence[SessionResult], steps: int, length: int) -> list[SessionResult]:
    """A trial's sessions as they stood when `steps` were played in them, one after the other.

    Args:
      results: by number.
      length: agent steps of a session.
    """
    own = [steps - number * length for number in range(len(results))]
    return [
        result._replace(
            curve=_until(result.curve, last),
            episodes={game: _until(curve, last) for game, curve in result.episodes.items()},
        )
        for result, last in zip(results, own, strict=True)
        if last > 0
    ]


def _until(curve: Curve, last: int) -> Curve:
    kept = int(np.searchsorted(curve.steps, last, side="right"))
    return Curve(curve.steps[:kept], curve.scores[:kept])


def measures(results: Sequence[SessionResult]) -> dict[str, float]:
    """Means over sessions: score (of the last 100 training episodes), and the parts of fitness and itself.

    Those that are not defined, without a standard or before the first episode's end, are left out.
    """
    scores = [result.score for result in results if not math.isnan(result.score)]
    known = {"score": float(np.mean(scores))} if scores else {}
    fitness = fitness_of(results)
    return {**known, **fitness._asdict(), "fitness": fitness.length} if fitness else known
