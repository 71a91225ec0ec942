"""Scores as they come from a table and from Redis, and several runs as a mean with its interval."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from live.curves import IntervalCurve, ScoreCurves, mean_of_runs
from memory.runs.keys import Keys
from memory.server.connection import Client
from reporting.tables import EpisodeRecord, EpisodeTable


def episode(sequence: int, score: float, **others: object) -> EpisodeRecord:
    record = EpisodeRecord(0, sequence, 0, 10 * sequence, 0, score, score, score, 9)
    return record._replace(action_counts=((4, 3, 2),), **others)  # type: ignore[arg-type]


def test_an_episode_counts_once_from_table_and_stream(tmp_path: Path, client: Client, keys: Keys) -> None:
    EpisodeTable(tmp_path / "pong.csv").add([episode(1, 1.0), episode(2, 3.0)])
    for record in (
        episode(2, 3.0),
        episode(3, 5.0),
        episode(4, 9.0, evaluation=True),
        episode(5, 1, game="x"),
    ):
        client.xadd(keys.episodes, {"episode": json.dumps(record)})
    curves = ScoreCurves(["pong"])
    curves.read_table(tmp_path / "pong.csv")
    curves.read_stream(client, keys)
    curves.read_stream(client, keys)
    assert curves.episodes == 4 and curves.num_actions == 3
    trained, (evaluated,) = curves.points("pong", False), curves.points("pong", True)
    assert (trained[-1].mean, trained[-1].episodes) == (3.0, 3) and evaluated.mean == 9.0
    client.xadd(keys.episodes, {"episode": json.dumps(episode(6, 7.0))})
    curves.read_stream(client, keys)
    assert curves.points("pong", False)[-1].mean == 4.0, "it grows"


def test_runs_are_joined_where_all_have_values() -> None:
    steps = np.array([0.0, 50.0, 100.0])
    lines = [IntervalCurve(steps, steps * slope) for slope in (1.0, 2.0, 3.0)]
    lines[0] = IntervalCurve(steps[:2], steps[:2])
    mean = mean_of_runs(lines)
    assert mean.steps[-1] == 50.0 and mean.low is not None and mean.high is not None
    np.testing.assert_allclose(mean.values, 2 * mean.steps)
    assert (mean.low[1:] < mean.values[1:]).all() and (mean.values[1:] < mean.high[1:]).all()
    assert (mean.low >= mean.steps - 1e-9).all() and (mean.high <= 3 * mean.steps + 1e-9).all()
    assert mean_of_runs(lines[:1]) is lines[0]


def test_the_interval_of_alike_runs_has_no_width() -> None:
    line = IntervalCurve(np.array([0.0, 10.0]), np.array([1.0, 2.0]))
    mean = mean_of_runs([line, line])
    assert mean.low is not None
    np.testing.assert_allclose(mean.low, mean.values)
