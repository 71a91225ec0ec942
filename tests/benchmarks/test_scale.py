from __future__ import annotations

import pytest

from benchmarks.harness import Effort, MedianRange, throwaway_server
from benchmarks.report import GOALS, Figure
from benchmarks.scale import cluster, shards
from benchmarks.scale.actors import RATE
from benchmarks.scale.shards import ACTORS, SHARDS


@pytest.mark.slow
def test_every_number_of_shards_carries_the_same_load() -> None:
    """Real servers and a real sampler: each delivers and draws, and its parts make the whole."""
    with throwaway_server() as redis:
        figures = {figure.key: figure for figure in shards.measure(redis, Effort(1, 0.6), seed=1)}
    assert set(figures) <= set(GOALS)
    wholes = [figures[f"scale.shards_{count}_processor_us"] for count in SHARDS]
    for figure in wholes:
        _check(figure)
    ratio = figures["scale.shards_4_ratio"].value.median
    assert ratio == pytest.approx(wholes[-1].value.median / wholes[0].value.median)


@pytest.mark.slow
def test_a_cluster_carries_what_plain_servers_do() -> None:
    """A real cluster of three masters, and three servers: each delivers and draws."""
    with throwaway_server() as redis:
        figures = {figure.key: figure for figure in cluster.measure(redis, Effort(1, 0.6), seed=1)}
    assert set(figures) <= set(GOALS)
    wholes = [figures[f"scale.{kind}_processor_us"] for kind in ("nodes", "cluster")]
    for figure in wholes:
        _check(figure)
    ratio = figures["scale.cluster_ratio"].value.median
    assert ratio == pytest.approx(wholes[1].value.median / wholes[0].value.median)


def _check(figure: Figure) -> None:
    """It delivered and drew, and its parts make the whole."""
    of = {name: value.median for name, value in figure.beside.items() if isinstance(value, MedianRange)}
    assert 0 < of["delivered"] <= 1.05 * ACTORS * RATE
    assert of["drawn_alone"] > of["drawn"] > 0
    assert min(of["actors_us"], of["learner_us"], of["servers_us"], of["p99_ms"]) > 0
    assert figure.value.median == pytest.approx(of["actors_us"] + of["learner_us"] + of["servers_us"])
