"""A run's page: what it says of the run's settings, and how it is written anew after an evaluation."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from args import Args
from envs.action_names import action_names
from envs.config import EnvConfig, EnvDescription
from envs.registry import describe_env
from own_code.code import full_name
from parameters.declare import flag_of
from reporting.history import RunHistory
from reporting.pages.run_page import GameFacts, RunFacts, write_run_html
from reporting.tables import learning_path, read_episodes, read_learning
from wiring.record.provenance import commit
from wiring.setting import Setting


def run_facts(setting: Setting) -> RunFacts:
    """The facts of a run that begins now."""
    return facts_of(setting.args, descriptions(setting), commit_text(commit()))


def descriptions(setting: Setting) -> dict[str, EnvDescription]:
    """The description of each game."""
    return {game: setting.of_actor(number).description for number, game in enumerate(setting.args.games)}


def seats_of(described: Mapping[str, EnvDescription]) -> dict[str, int]:
    """How many environments each table of a game takes: its seats."""
    return {game: each.seats for game, each in described.items()}


def facts_of(args: Args, described: Mapping[str, EnvDescription], of_commit: str) -> RunFacts:
    """The facts of a run with these parameters and games."""
    settings = changed_settings(args)
    words = [word for flag, value, _ in settings for word in (flag, _given_again(flag, value))]
    return RunFacts(
        games={game: _game_facts(game, each) for game, each in described.items()},
        settings=settings,
        commit=of_commit,
        command=shlex.join(["bash", "start_learning_atari.sh", *words]),
    )


def _given_again(flag: str, value: str) -> str:
    """The value by which the flag means the same in any folder."""
    return ",".join(map(full_name, value.split(","))) if flag in ("--game", "--agent") else value


def _game_facts(game: str, env: EnvDescription) -> GameFacts:
    bounds = None
    if env.action_low is not None and env.action_high is not None:
        bounds = list(zip(env.action_low, env.action_high, strict=True))
    names = action_names(game, env.num_actions) if env.num_actions else ()
    return GameFacts(env.frames_per_step, bounds, names)


def names_the_server(name: str) -> bool:
    """Whether this parameter says where Redis is, or how to log in there: nothing to show to others."""
    return "redis" in name or "password" in name


def _is_shown(name: str) -> bool:
    return name not in ("spec", "id_actor") and not names_the_server(name)


def changed_settings(args: Args) -> list[tuple[str, str, str]]:
    """Flag, value and default of what is not at its default, the game first; a spec shows in values.

    Nothing that names the server: the page is shown to others.
    """
    rows = [
        (flag_of(name), str(getattr(args, name)), str(field.default))
        for name, field in type(args).model_fields.items()
        if name == "game" or (_is_shown(name) and getattr(args, name) != field.default)
    ]
    return sorted(rows, key=lambda row: row[0] != "--game")


def commit_text(found: Mapping[str, object] | None) -> str:
    """A commit in a sentence; "" where none is known."""
    if found is None:
        return ""
    return f"{str(found['hash'])[:12]}{', with changes' if found['dirty'] else ''}"


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
    """Write the page from the run's tables and what its learner recorded at its start."""
    args = kind(**record["arguments"])
    described = {game: describe_env(args.playing(game).select(EnvConfig)) for game in args.games}
    history = RunHistory(args.games, seats_of(described))
    for episode in read_episodes(table):
        history.add(episode)
    for point in read_learning(learning_path(table)):
        history.add_learning(point)
    write_run_html(page, history, facts_of(args, described, commit_text(record["commit"])))
