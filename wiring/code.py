"""Which code of a user's own a process may run, and whether it is that of a run or snapshot.

`canonical` gets what this process was given itself. What Redis and snapshots say is only compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from agents.names import misfit
from args import CODE, Args, Plain, UserError
from envs.config import EnvConfig, EnvDescription, EnvError
from envs.registry import canonical_game, describe_env
from event_log.records import LogHeader, log_header
from own_code.code import SHOWN, import_code, imported_code, names_code, short_name

ARGUMENTS = f"{CODE}--env-args"
"""Name of the setting that keeps the arguments of the environment."""


def _with_code(args: Args) -> Args:
    """Import what --game and --agent name of a user's own; `args` by their short names. Raises UserError."""
    for name in (*args.games, args.agent):
        if names_code(name):
            import_code(name)
    games, env_args = ",".join(map(short_name, args.games)), _canonical_json(args.env_args)
    names = {"game": games, "agent": short_name(args.agent), "env_args": env_args}
    return args.model_copy(update={name: new for name, new in names.items() if new != getattr(args, name)})


def canonical(args: Args) -> Args:
    """`args` of this process's own command line, with the one name of each game, by which runs and files are
    called. Raises EnvError.

    Here alone code of the user's that they name is run.
    """
    args = _with_code(args)
    games = [canonical_game(game) for game in args.games]
    twice = next((game for game in games if games.count(game) > 1), None)
    if twice is not None:
        raise EnvError(f"--game names {twice} twice: each game of a run is named once.")
    return args.playing(",".join(games))


def _canonical_json(text: str) -> str:
    """The one way to write it, so that it can be compared; what is no JSON stays."""
    try:
        return json.dumps(json.loads(text), sort_keys=True) if text else ""
    except ValueError:
        return text


def check_games(args: Args) -> None:
    """Check that the agent can play every game, and that environments leave no seat of one empty.

    A user's own agent checks itself. Games of several players are tried for a moment. Launchers of many
    processes check first, or each process would report the same mistake.

    Raises:
        UserError: An agent of ours cannot play a game, or environments leave a seat empty.
        EnvError: There is no such game, or it cannot be played here.
        EnvFailure: A game failed while it was looked at or tried.
    """
    for game in args.games:
        config = args.playing(game).select(EnvConfig)
        described = describe_env(config)
        if not names_code(args.agent) and (sentence := misfit(args.agent, described.num_actions is not None)):
            raise UserError(sentence)
        check_tables(args.envs_per_actor, game, described)
        if described.seats > 1 or described.by_turns:
            from envs.multi.trial import try_game  # its libraries are not for other games

            try_game(config, described)


def check_tables(environments: int, game: str, described: EnvDescription) -> None:
    """Raise UserError where so many environments of one actor leave a seat of `game` empty."""
    if environments % described.seats:
        raise UserError(
            f"{game} has {described.seats} seats, and each is an environment: --envs-per-actor must be a"
            f" multiple of {described.seats}, not {environments}."
        )


def code_settings(args: Args) -> dict[str, Plain]:
    """What a run publishes and saves of the user's own code: names, SHA-256, arguments."""
    used = (imported_code(name) for name in (*args.games, args.agent))
    arguments: dict[str, Plain] = {ARGUMENTS: args.env_args} if args.env_args else {}
    return arguments | {CODE + code.name: code.sha256 for code in used if code is not None}


def log_header_of(game: str, description: EnvDescription, env_args: str) -> LogHeader:
    """The header of an event log of `game`, with the SHA-256 of the user's own code, and --env-args."""
    code = imported_code(game)
    return log_header(game, description, code.sha256 if code else "", env_args)


def check_code(args: Args, settings: Mapping[str, object], whose: str, same_arguments: bool = True) -> None:
    """Raise UserError unless this process has all code that it would run under `settings`.

    Args:
        whose: what the settings are of, as the sentence begins: "The snapshot results/x.pth".
        same_arguments: those of --env-args must be the same also where they were given here.
    """
    for flag, name in _names(args, settings):
        code = imported_code(name)
        if code is None:
            raise UserError(
                f"{whose} names the {flag} {name}, and code is run only where it is asked for: add"
                f" --{flag} {'path/to/' if '.py:' in name else ''}{short_name(name)}."
            )
        theirs = str(settings.get(CODE + name, ""))
        if theirs != code.sha256 and not args.changed_code and name in str(settings.get(flag)):
            raise UserError(
                f"{whose} names another {name}, of the SHA-256 {theirs[:SHOWN] or 'unknown'}, and it is"
                f" {code.sha256[:SHOWN]} here: give the same file to --{flag}, or --changed-code to go on"
                " with this one."
            )
    arguments = settings.get(ARGUMENTS, "")
    if arguments != args.env_args and (same_arguments or "env_args" not in args.model_fields_set):
        raise UserError(f"{whose} names other arguments of its environment: give --env-args '{arguments}'.")


def _names(args: Args, settings: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Flag and name of the user's own code that would play: what was given here goes before the settings."""
    given_here = args.model_fields_set
    game = args.game if "game" in given_here else str(settings.get("game", ""))
    agent = args.agent if "agent" in given_here else str(settings.get("agent", ""))
    for flag, names in (("game", game.split(",")), ("agent", [agent])):
        yield from ((flag, name) for name in names if names_code(name))
