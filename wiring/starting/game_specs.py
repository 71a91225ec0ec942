"""The spec that says what a run does not: that of its kind of game and its agent."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from args import Args, read_args
from envs.config import EnvConfig
from envs.registry import describe_env, family_name
from own_code.folder_imports import ROOT
from wiring.code import canonical

GAMES = {
    "CartPole-v*,probe:catch": "multi/cartpole_catch",
    "CartPole-v*": "classic/cartpole_{agent}",
    "Pendulum-v*": "classic/pendulum_{agent}",
    "HalfCheetah-v*": "classic/halfcheetah_{agent}",
    "LunarLander-v*": "classic/lunarlander_{agent}",
    "probe:lock*": "classic/lock_{agent}",
    "probe:*": "classic/catch_{agent}",
    "maze:*": "maze/{agent}_cpu",
    "minatar:*": "minatar/{agent}",
    "pettingzoo:tictactoe_v*": "multi/tictactoe",
    "pettingzoo:connect_four_v*": "multi/connect_four",
}
"""Kinds of games -> the specs in specs/ that say what a run of them does not; where there is no such file,
that of the game's spaces; else the flags' own defaults, which are Atari's.
"""
GYMNASIUMS = "gym", "gym.own"
"""Families of games whose kind their spaces tell: Gymnasium's ids and a user's own environments."""
OF_DISCRETE, OF_CONTINUOUS = "classic/cartpole_{agent}", "classic/pendulum_{agent}"
"""Specs of games that observe vectors: of those with discrete and of those with continuous actions."""


def with_spec(args: Args, argv: Sequence[str]) -> tuple[Args, list[str]]:
    """The run with the spec of its kind of game and agent, unless it names one (--spec '': none).

    Raises:
        UserError, EnvError, EnvFailure: what the game is cannot be found out.
    """
    if "spec" in args.model_fields_set or (path := spec_of(canonical(args))) is None:
        return args, list(argv)
    with contextlib.suppress(OSError):
        sentence = f"What is not given comes from {path.relative_to(ROOT)} (without it: --spec '')."
        print(sentence, file=sys.stderr, flush=True)
    argv = ["--spec", str(path), *argv]
    return read_args(argv), argv


def spec_of(args: Args) -> Path | None:
    """The spec of a kind of game and an agent; None where there is none.

    Args:
        args: with the one name of each game (`wiring.code.canonical`).

    Raises:
        EnvError, EnvFailure: what the game is cannot be found out.
    """
    of_game = next((stem for pattern, stem in GAMES.items() if _fits(args.games, pattern)), "")
    return _file(of_game, args.agent) or _file(_by_spaces(args), args.agent)


def _file(stem: str, agent: str) -> Path | None:
    path = ROOT / "specs" / f"{stem.format(agent=agent)}.yaml"
    return path if path.is_file() else None


def _fits(games: Sequence[str], pattern: str) -> bool:
    patterns = pattern.split(",")
    return len(games) == len(patterns) and all(map(fnmatchcase, games, patterns))


def _by_spaces(args: Args) -> str:
    """The spec of a game of GYMNASIUMS that observes vectors; "" for others."""
    if len(args.games) > 1 or family_name(args.game) not in GYMNASIUMS:
        return ""
    described = describe_env(args.select(EnvConfig))
    if described.by_turns or len(described.frame_shape) > 1:
        return ""
    return OF_CONTINUOUS if described.num_actions is None else OF_DISCRETE
