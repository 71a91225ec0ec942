"""What a run shows of its results, a page and scalars; and how the tables of an earlier run are set aside."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from learning.results import Results
from reporting.pages.run_page import RunFacts, write_run_html
from reporting.tables import learning_path
from reporting.tensorboard import Scalars
from reporting.trackers import Tracking

log = logging.getLogger(__name__)


class Figures:
    """`Reward_<game>.html` and TensorBoard's scalars of a run."""

    def __init__(
        self,
        folder: Path,
        file_name: str,
        results: Results,
        facts: RunFacts,
        first_step: int,
        tracking: Tracking | None = None,
    ) -> None:
        """Continues a predecessor's files, without its scalars from T_learner `first_step` on."""
        self.results = results
        self._html = folder / f"Reward_{file_name}.html"
        self._facts, self._tracking = facts, tracking
        self._scalars = Scalars(folder / "tensorboard" / file_name, purge_step=first_step)

    def plot(self) -> None:
        """Write the html anew, also when no episode has ended yet."""
        results = self.results
        results.write_metrics()
        write_run_html(self._html, results.history, self._facts)

    def scalars(self, t_learner: int, values: Mapping[str, float]) -> None:
        """Record scalars at T_learner, and beside them the scores."""
        results = self.results
        scores = {"score/": results.training.summary(), "score/evaluation_": results.evaluation.summary()}
        if len(results.games) > 1:
            scores |= {f"score/{game}/": each for game, each in results.training.by_game().items()}
        values = {**values, "score/left_out": float(results.left_out)}
        for prefix, summary in scores.items():
            if summary is not None:
                values |= {prefix + name: getattr(summary, name) for name in ("mean", "std", "mean_length")}
        if rooms := results.history.first_visits:
            values |= {"rooms/known": len(rooms)}
            if results.last_rooms:
                values |= {"rooms/mean": float(np.mean(results.last_rooms))}
        self._scalars.add(t_learner, values)
        if self._tracking is not None:
            self._tracking.scalars(t_learner, values)

    def close(self) -> None:
        """Write the scalars that the disk refused so far, and what waits for the tracker."""
        self._scalars.flush()
        if self._tracking is not None:
            self._tracking.close()


def set_aside(table: Path) -> None:
    """Rename an earlier run's `table` of episodes and its history of learning, if they have rows.

    So two runs never mix in one.
    """
    tables = [path for path in (table, learning_path(table)) if _has_rows(path)]
    number = 1
    while any(_aside(path, number).exists() for path in tables):
        number += 1
    for path in tables:
        path.rename(_aside(path, number))
        log.warning("The table of an earlier run was moved to %s.", _aside(path, number))


def _aside(table: Path, number: int) -> Path:
    return table.with_suffix(f".earlier_{number}.csv")


def _has_rows(table: Path) -> bool:
    """Whether a csv file has lines beyond its header."""
    return table.is_file() and table.read_bytes().count(b"\n") > 1
