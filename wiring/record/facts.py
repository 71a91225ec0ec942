"""What the page of a run says of its settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from args import Args
from envs.action_names import action_names
from envs.config import EnvDescription
from own_code.code import full_name
from parameters.declare import flag_of
from reporting.pages.run_page import GameFacts, RunFacts
from wiring.record.provenance import commit
from wiring.setting import Setting


def run_facts(setting: Setting) -> RunFacts:
    """Of a run that begins now, with these parameters."""
    return facts_of(setting.args, descriptions(setting), commit_text(commit()))


def descriptions(setting: Setting) -> dict[str, EnvDescription]:
    """Of each game."""
    return {game: setting.of_actor(number).description for number, game in enumerate(setting.args.games)}


def seats_of(described: Mapping[str, EnvDescription]) -> dict[str, int]:
    """Of each game how many environments are one table."""
    return {game: each.seats for game, each in described.items()}


def facts_of(args: Args, described: Mapping[str, EnvDescription], of_commit: str) -> RunFacts:
    """Of a run with these parameters, in games of these kinds."""
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


def changed_settings(args: Args) -> list[tuple[str, str, str]]:
    """Flag, value and default of each that has not its default, the game first; a spec is in its values."""
    rows = [
        (flag_of(name), str(getattr(args, name)), str(field.default))
        for name, field in type(args).model_fields.items()
        if name == "game" or (name not in ("spec", "id_actor") and getattr(args, name) != field.default)
    ]
    return sorted(rows, key=lambda row: row[0] != "--game")


def commit_text(found: Mapping[str, object] | None) -> str:
    """Of what `commit` found."""
    if found is None:
        return ""
    return f"{str(found['hash'])[:12]}{', with changes' if found['dirty'] else ''}"
