"""Scores that somebody wrote into a csv: columns game and score, perhaps seed and agent; a row a run."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from args import UserError
from parameters.declare import problem
from reporting.measures.fitness import standard_of
from reporting.measures.saber import Run

Finite = Annotated[float, Field(allow_inf_nan=False)]
Line = tuple[int, dict[str | None, Any]]
"""Its number, and its cells by column; under None a list of those beyond the last column."""


class _Row(BaseModel):
    """A row of a csv; its score is that of whole episodes."""

    model_config = ConfigDict(str_strip_whitespace=True)

    agent: str = ""
    game: str = Field(min_length=1)
    seed: str = ""
    score: Finite


COLUMNS = tuple(_Row.model_fields)
ALIKE = 0.75
"""Least similarity (difflib) of a column's name to one of COLUMNS that it may be a misspelling of."""


def runs_of_csv(path: Path, name_of: Callable[[str], str]) -> list[Run]:
    """The runs in a csv; `name_of`: a game's one name. Raises UserError, with file and line."""
    rows = [(line, _row(f"{path}, line {line}", cells)) for line, cells in _lines(path)]
    _check_agents(path, rows)
    first: dict[tuple[str, str, str], int] = {}
    runs = []
    for line, row in rows:
        game = row.game if standard_of(row.game) else name_of(row.game)
        of_run = row.agent, game, _number(row.seed) or f"of line {line}"
        if of_run in first:
            raise UserError(
                f"{path}, line {line}: {row.game} with seed {row.seed} is there twice, first in line"
                f" {first[of_run]}."
            )
        first[of_run] = line
        runs.append(Run(row.agent, game, (math.nan, math.nan, row.score), None))
    return runs


def unread_columns(path: Path) -> list[str]:
    """Columns of a csv that tell a report nothing: an agent's name may stand in one of them."""
    return [name for name in _lines(path)[0][1] if name and name not in COLUMNS]


def _lines(path: Path) -> list[Line]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            reader.fieldnames = columns = [name.strip().lower() for name in reader.fieldnames or ()]
            lines = [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path} is no table of scores: {error}.") from error
    _check_columns(path, columns)
    return lines


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in columns]
    for name in columns:
        if name not in COLUMNS and (near := get_close_matches(name, missing, 1, ALIKE)):
            raise UserError(f"{path} has a column {name}, and none called {near[0]}: rename it.")
    if not {"game", "score"} <= {*columns}:
        raise UserError(
            f"{path} is no table of scores: it needs the columns game and score, between commas, and a row"
            " for each seed."
        )
    if twice := [name for name, count in Counter(columns).items() if count > 1 and name in COLUMNS]:
        raise UserError(f"{path} has several columns {twice[0]}: leave one.")


def _row(where: str, cells: dict[str | None, Any]) -> _Row:
    if any(cells.get(None, ())):
        raise UserError(f"{where}: it has more cells than there are columns.")
    if any(cells.get(name, "") is None for name in COLUMNS):
        raise UserError(f"{where}: it has fewer cells than there are columns.")
    try:
        return _Row.model_validate(cells)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{where}: {first['loc'][0]} {problem(first)}") from error


def _check_agents(path: Path, rows: Sequence[tuple[int, _Row]]) -> None:
    """Raise UserError where some rows name an agent, and others do not."""
    nameless = [line for line, row in rows if not row.agent]
    if nameless and len(nameless) < len(rows):
        raise UserError(f"{path}, line {nameless[0]}: agent is empty, though other rows name theirs.")


def _number(seed: str) -> str:
    """One text for a seed, which a spreadsheet may write as 01 or 1.0; others stay."""
    whole = re.fullmatch(r"(\d+)(\.0*)?", seed, re.ASCII)
    return str(int(whole[1])) if whole else seed
