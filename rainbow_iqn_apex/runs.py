"""Starts a run and waits for it; reads what runs left in their folder."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from args import UserError, checked_args
from envs.config import EnvError
from envs.registry import canonical_game
from own_code.code import names_code, short_name
from own_code.folder_imports import ROOT
from reporting.tables import learning_path

TELLS = 5
"""Number of the last lines of a run that failed which the error shows."""
SAVES_S = 600
"""How long (seconds) a run may take to save when it is stopped; a replay of a million transitions takes
minutes.
"""


class RunFailed(RuntimeError):
    """The processes ended with an error; the message is the last that they said."""


class RunTables(NamedTuple):
    """What a folder holds of one run; tables are pandas' where it is installed, else arrays by column."""

    game: str
    settings: dict[str, Any]
    episodes: Any  # one row per episode
    learning: Any  # one row per --log-interval
    evaluations: dict[str, Any]  # evaluation_<name>.json by name

    def __repr__(self) -> str:
        """One line: a notebook shows it where a cell ends."""
        episodes, learning = _rows(self.episodes), _rows(self.learning)
        return f"<{self.game}: {episodes:,} episodes, {learning:,} rows of learning>"


def train(
    game: str,
    agent: str | None = None,
    results: str | Path = "results",
    on_line: Callable[[str], object] = print,
    **flags: Any,
) -> RunTables:
    """Run Redis (if none answers), the learner and the actors to the end; what they left.

    An interrupt, or any other exception, stops all of them first. They save, and the same call goes on.

    Args:
        on_line: gets what the processes say, line by line.
        flags: those of start_learning.py with underscores, as T_max=20000 or env_args={"size": 5};
            None: not given, as `agent` where a spec names it.

    Raises:
        ValueError: a flag is wrong.
        RunFailed: the processes ended with an error.
    """
    given = {"game": game, "agent": agent, "path_to_results": str(results), **flags}
    plain = {
        name: json.dumps(value) if isinstance(value, Mapping) else value
        for name, value in given.items()
        if value is not None
    }
    args = checked_args(plain)
    words = [word for name, value in plain.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    _run_to_end(words, on_line)
    games = (short_name(game) if names_code(game) else canonical_game(game) for game in args.games)
    return read_run(args.path_to_results, args.playing(",".join(games)).file_name)


def _run_to_end(words: Sequence[str], on_line: Callable[[str], object]) -> None:
    """start_learning.py with this command line. Raises RunFailed."""
    said: deque[str] = deque(maxlen=TELLS)
    with subprocess.Popen(
        [sys.executable, str(ROOT / "start_learning.py"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,  # Ctrl-C comes to this process alone, which stops the others in order
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line.rstrip())
                on_line(line.rstrip())
        finally:
            _stop(process)
    if process.returncode:
        raise RunFailed("\n".join(said))


def _stop(process: subprocess.Popen[str]) -> None:
    """Have it save and end; SIGKILL would leave its children, which end by themselves then."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=SAVES_S)  # reads on: a full pipe would keep it from its end
    finally:
        process.kill()


def read_run(folder: str | Path = "results", game: str | None = None) -> RunTables:
    """The tables of the run in a folder.

    Args:
        game: which, where there are several; as for --game, or as in the files' names.

    Raises:
        ValueError: one sentence; there is none, or there are several.
    """
    place = Path(folder)
    name = _only_run(place, game)
    settings = json.loads((place / f"run_{name}.json").read_text())
    evaluations = {
        path.stem.removeprefix("evaluation_"): json.loads(path.read_text())
        for path in sorted(place.glob("evaluation_*.json"))
    }
    table = place / f"{name}.csv"
    return RunTables(name, settings, _table(table), _table(learning_path(table)), evaluations)


def _only_run(folder: Path, game: str | None) -> str:
    """The run of `game` in the folder, as it is called in the files' names. Raises UserError."""
    there = sorted(path.stem.removeprefix("run_") for path in folder.glob("run_*.json"))
    wanted = there if game is None else [checked_args({"game": _canonical(game)}).file_name]
    found = [name for name in there if name in wanted]
    if len(found) == 1:
        return found[0]
    if not there:
        raise UserError(f"{folder} holds no run.")
    holds = "several runs" if found else f"no run of {game}"
    raise UserError(f"{folder} holds {holds}: pass one of {', '.join(there)} as game.")


def _canonical(game: str) -> str:
    """As its files call it: "ALE/Pong-v5" is pong. A name that no family knows stays as it is."""
    try:
        return ",".join(map(canonical_game, game.split(",")))
    except EnvError:
        return game


def _table(path: Path) -> Any:
    rows = []
    if path.exists():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    columns = {name: _column([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    try:
        import pandas
    except ImportError:
        return columns
    return pandas.DataFrame(columns)


def _rows(table: Any) -> int:
    return len(next(iter(table.values()), ())) if isinstance(table, dict) else len(table)


def _column(words: list[str]) -> Any:
    """Numbers where all are; else text."""
    for kind in (np.int64, np.float64):
        try:
            return np.array([word or "nan" for word in words]).astype(kind)
        except ValueError:
            continue
    return np.array(words)
