"""Recipes beside what was published for them: Atari 100k's table of made-up scores, and a tiny run."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.benchmark.command import write_table
from lab.benchmark.recipes import beside_published, section, t_interval
from lab.benchmark.table import Row, published
from lab.spec import read_experiments
from reporting.measures.fitness import standard_of
from tests.processes import ROOT, run

ATARI_100K = ROOT / "specs" / "lab" / "atari_100k.yaml"
PLAYED = ("crazy_climber", "krull", "road_runner", "kung_fu_master", "bank_heist", "pong")


def row(game: str, scores: tuple[float, ...], recipe: str = "der_paper") -> Row:
    counts = (3, len(scores), 0, 0, False, 100_000, 300_000, 60.0, "abc")
    return Row("a", game, recipe, *counts, (), scores, (), None, published(game, recipe), recipe)


def test_all_games_are_listed_twice_and_six_are_played() -> None:
    rows = read_experiments(ATARI_100K)
    for recipe, mean, median in (("der_paper", 0.285, 0.161), ("der", 0.350, 0.189)):
        games = [each.args().game for each in rows.values() if each.meta.recipe == recipe]
        assert len(set(games)) == len(games) == 26
        found = beside_published([row(game, (0.0,), recipe) for game in games])[0]
        assert found.published == pytest.approx(mean, abs=5e-4)  # as the papers have it
        scores = [published(game, recipe)[0].score for game in games]
        standards = [standard for game in games if (standard := standard_of(game))]
        normalised = [(s - each.random) / each.range for s, each in zip(scores, standards, strict=True)]
        assert np.median(normalised) == pytest.approx(median, abs=5e-4)
    assert tuple(each.args().game for each in rows.values() if not each.meta.extra) == PLAYED


@pytest.mark.parametrize(
    ("factor", "spread", "rule"), [(1.0, 0.1, "kept"), (0.9, 0.001, "not kept"), (0.8, 0.9, "not kept")]
)
def test_the_rule(factor: float, spread: float, rule: str) -> None:
    """The share of the published distance from random play, and how far seeds lie apart."""
    rows = []
    for game in ("krull", "bank_heist"):
        standard, score = standard_of(game), published(game, "der_paper")[0].score
        assert standard is not None
        distance = (score - standard.random) * factor
        rows.append(row(game, tuple(standard.random + distance * (1 + e) for e in (-spread, 0.0, spread))))
    (found,) = beside_published(rows)
    assert (found.games, found.sessions, found.rule) == (2, 6, rule)
    assert found.ratio.value == pytest.approx(factor)
    assert found.ratio.low < factor < found.ratio.high


def test_recipes_are_never_mixed() -> None:
    rows = [row("pong", (-19.0, -18.0)), row("pong", (-9.0, -10.0), "der"), row("krull", ())]
    paper, dopamine = beside_published(rows)
    assert (paper.recipe, paper.games, dopamine.recipe, dopamine.games) == ("der_paper", 1, "der", 1)
    assert paper.published == pytest.approx((-19.3 + 20.7) / 35.3)
    assert dopamine.published == pytest.approx((-9.7 + 20.7) / 35.3)
    shown = section(rows)
    assert "| pong | der_paper | 2 of 3 | -18.5 | -24.9 to -12.1 | -19.3 | van Hasselt et al. 2019 |" in shown
    assert "| 0.312 (Agarwal et al. 2021 (recalled)) |" in shown
    assert "| -9.7 | Agarwal et al. 2021 (recalled) |" in shown
    assert "krull" not in shown  # not run


def test_what_is_not_known_is_not_shown() -> None:
    one = row("pong", (-19.0,))
    (found,) = beside_published([one])
    assert found.rule == "" and np.isnan(found.ratio.high)
    assert section([one]).count("nan") == 0
    assert section([replace(one, recipe="")]) == ""
    unpublished = row("montezuma_revenge", (0.0, 100.0))
    assert beside_published([unpublished]) == []
    assert "| montezuma_revenge | der_paper | 2 of 3 | 50.0 |" in section([one, unpublished])
    assert section([unpublished]) == ""


def test_t_intervals() -> None:
    """Of 3 and of 21 seeds; quantiles from scipy 1.17.1: 4.302653, 2.085963."""
    assert t_interval([1.0]) is None
    assert t_interval([1.0, 2.0, 3.0]) == pytest.approx(
        (2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5), abs=1e-4
    )
    many = np.arange(21.0)
    half = 2.085963 * many.std(ddof=1) / 21**0.5
    assert t_interval([*many]) == pytest.approx((10 - half, 10 + half), abs=2e-3)


def test_the_table_of_nothing_yet(tmp_path: Path) -> None:
    write_table(tmp_path, [*read_experiments(ATARI_100K).values()], tmp_path / "runs")
    text = (tmp_path / "README.md").read_text()
    assert "| der_paper | not run | 100K |" in text and "## Recipes beside" in text
    assert not (tmp_path / "recipes.csv").exists()


TINY = """# Atari 100k (Kaiser et al. 2019, arXiv 1903.00374), tiny: for this test alone
spec: {root}/specs/atari/der_paper.yaml
seed: 5
threads: 1
serial: true
learn-start: 100
T-max: 260
memory-capacity: 1000
max-episode-steps: 40
experiments:
  tiny_breakout: {{game: breakout, meta: {{recipe: der_paper, sessions: 2}}}}
  tiny_pong: {{game: pong, meta: {{recipe: der, extra: true}}}}
"""


@pytest.mark.slow
def test_a_tiny_atari_100k_plays_resumes_and_tables(tmp_path: Path) -> None:
    spec, folder = tmp_path / "tiny.yaml", tmp_path / "tiny"
    spec.write_text(TINY.format(root=ROOT))
    words = "run_lab.py", "benchmark", spec, "--results", folder
    said = run(*words, log=tmp_path / "first.log", timeout_s=600)
    assert "tiny_breakout trial_0 session 1: finished." in said
    evaluated = sorted(folder.glob("runs/**/evaluation_breakout.json"))
    settings = [json.loads(path.read_text())["settings"] for path in evaluated]
    assert len(settings) == 2
    for each in settings:
        assert each["evaluation_epsilon"] == 0.001 and not each["eval_noise"]
        assert each["minimal_actions"] and each["noop_max"] == 30 and not each["terminal_on_life_loss"]
    with (folder / "recipes.csv").open() as file:
        (found,) = csv.DictReader(file)
    assert (found["recipe"], found["games"], found["sessions"]) == ("der_paper", "1", "2")
    assert float(found["ratio_low"]) <= float(found["ratio"]) <= float(found["ratio_high"])
    assert "1.9 (van Hasselt et al. 2019, 100K)" in (folder / "README.md").read_text()
    again = run(*words, log=tmp_path / "again.log", timeout_s=600)
    assert "tiny_breakout trial_0 session 1: finished before." in again and "tiny_pong" not in again
