"""The command report: evaluations of many games and seeds on one page, with tables and a picture."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from args import UserError
from lab.files import read_model
from reporting.measures.aggregates import Estimate, probability_of_improvement
from reporting.pages.saber_page import WHOLE, Reference, Run, agents_of, by_game, shown, write_report

Finite = Annotated[float, Field(allow_inf_nan=False)]
_SCORE = Reference("score", lambda _game, score: score)
"""Which of two runs is better needs no more."""


class _Mean(BaseModel):
    mean: Finite


class _Settings(BaseModel):
    agent: str = ""
    proba_sticky_actions: float | None = None


class _Evaluation(BaseModel):
    """Of `evaluation_<game>.json` (evaluation.result)."""

    game: str
    score_5min: _Mean
    score_30min: _Mean
    score_saber: _Mean
    settings: _Settings = _Settings()


class _Row(BaseModel):
    """Of a csv; its score is that of whole episodes."""

    game: str
    score: Finite


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Of folders of evaluations, however deep, and of csv files. Raises UserError where one holds none."""
    runs = []
    for path in paths:
        is_alone = sum(_name(path) == _name(other) for other in paths) == 1
        called = _name(path) if is_alone else path.with_suffix("").as_posix()
        found = _of_folder(path, called) if path.is_dir() else _of_csv(path, called)
        if not found:
            raise UserError(
                f"{path} holds no score: name a csv, or a folder of evaluations by test_multiple_seed.py."
            )
        runs += found
    return runs


def _name(path: Path) -> str:
    """Of a folder or csv, without where it lies."""
    return path.resolve().name if path.is_dir() else path.stem


def _of_folder(folder: Path, called: str) -> list[Run]:
    """Under that name, or by the agents where these differ."""
    read = [read_model(path, _Evaluation, "evaluation") for path in sorted(folder.rglob("evaluation_*.json"))]
    several = len({each.settings.agent for each in read}) > 1
    runs = []
    for each in read:
        agent = each.settings.agent if several else called
        scores = each.score_5min.mean, each.score_30min.mean, each.score_saber.mean
        runs.append(Run(agent, each.game, scores, each.settings.proba_sticky_actions))
    return runs


def _of_csv(path: Path, called: str) -> list[Run]:
    """Columns game and score, a row for each seed."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [_Row.model_validate(row) for row in csv.DictReader(file)]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValidationError, ValueError, csv.Error) as error:
        raise UserError(
            f"{path} is no table of scores: it needs the columns game and score, a row for each seed."
        ) from error
    return [Run(called, row.game, (math.nan, math.nan, row.score), None) for row in rows]


def compare(runs: Sequence[Run], ours: str, theirs: str) -> Estimate:
    """The probability that `ours` improves on `theirs`, over the games of both. Raises UserError."""
    known = agents_of(runs)
    for name in (ours, theirs):
        if name not in known:
            raise UserError(f"--compare {name}: choose among {', '.join(known)}.")
    groups = [by_game(runs, name, WHOLE, _SCORE) for name in (ours, theirs)]
    common = sorted(groups[0].keys() & groups[1].keys())
    if not common:
        raise UserError(f"--compare {ours} {theirs}: they have no game in common.")
    first, second = ([group[game] for game in common] for group in groups)
    return probability_of_improvement(first, second)


def make_report(paths: Sequence[Path], folder: Path, pair: Sequence[str], say: Callable[[str], None]) -> None:
    """Write the report of what is there, and print its summary. Raises UserError."""
    runs = read_runs(paths)
    improvement = compare(runs, *pair) if pair else None
    for line in write_report(runs, folder):
        say(line)
    if improvement is not None:
        say(f"P({pair[0]} > {pair[1]}) = {shown(improvement)}")
    say(f"Written to {folder}: report.html, report.png, report.csv, games.csv.")
