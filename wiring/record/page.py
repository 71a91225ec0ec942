"""A run's page, written anew after an evaluation: its learner may have ended long ago."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from args import Args
from envs.config import EnvConfig
from envs.registry import describe_env
from learning.results import learning_path
from reporting.history import RunHistory
from reporting.pages.run_page import write_run_html
from reporting.tables import read_episodes, read_learning
from wiring.record.facts import commit_text, facts_of, seats_of


def renew_page(model: str | None, args: Args, folder: Path) -> Path | None:
    """Write the page of the run that made the snapshot anew, with the matches that lie beside it now.

    A page that cannot be read again, as of an earlier version, stays as it is, which is printed.

    Args:
        args: the evaluation's, whose game names the page.

    Returns:
        The page; None where `folder` is not that run's, or has none.
    """
    name = args.file_name
    page, record = folder / f"Reward_{name}.html", folder / f"run_{name}.json"
    is_of_run = model is not None and Path(model).parent.resolve() == folder.resolve()
    if not (is_of_run and page.exists() and record.exists()):
        return None
    try:
        _write(page, folder / f"{name}.csv", json.loads(record.read_bytes()), type(args))
    except (OSError, ValueError, LookupError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        print(f"{page} stays as it was: the run is of another version, or its files are damaged ({reason}).")
        return None
    return page


def _write(page: Path, table: Path, record: Mapping[str, Any], kind: type[Args]) -> None:
    """From the run's tables and what its learner noted of its start."""
    args = kind(**record["arguments"])
    described = {game: describe_env(args.playing(game).select(EnvConfig)) for game in args.games}
    history = RunHistory(args.games, seats_of(described))
    for episode in read_episodes(table):
        history.add(episode)
    for point in read_learning(learning_path(table)):
        history.add_learning(point)
    write_run_html(page, history, facts_of(args, described, commit_text(record["commit"])))
