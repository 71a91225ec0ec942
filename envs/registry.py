"""Finds the family of a game. A new kind of environment is one more entry of FAMILIES."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from envs.config import RAISED, EnvConfig, EnvDescription, EnvError, failure_of
from envs.contract import SeededVectorEnv
from envs.playback import Playback
from envs.seeding import checked_seeds
from own_code.code import names_code
from parameters.declare import flag_of

FAMILIES = (
    "small.probe",
    "atari",
    "small.minatar",
    "maze",
    "vizdoom",
    "malmo",
    "unity",
    "multi",
    "gym.own",
    "gym",
)
"""Modules of envs/ with an object FAMILY; the first that knows a game's name has it. Each is imported when a
name is looked up, so that `import envs` needs no emulator.
"""


@dataclass(frozen=True)
class Family:
    """How the games of one kind are named, described, built and replayed.

    The last three functions are only called with `config.game` in the form that `canonical_name` returns.
    """

    canonical_name: Callable[[str], str | None]  # a game's one name; None for a game of another family
    known_names: Callable[[], Sequence[str]]  # what a user may have meant
    describe: Callable[[EnvConfig], EnvDescription]
    make: Callable[[EnvConfig, Sequence[int]], SeededVectorEnv]
    playback: Callable[[EnvConfig, int], Playback]
    share: Callable[[Sequence[EnvConfig], Sequence[int]], Any] | None = None
    """Makes multi.barrier.Tables for --seat-runs, where seats are not those of one game: of each run's
    environment, with a seed for each table."""
    needs: Callable[[str], object] | None = None
    """Raises EnvError where a game's package or build is missing, which `describe` does without."""
    reads: tuple[str, ...] = ()
    """Which of FAMILY_SETTINGS it reads."""


FAMILY_SETTINGS = "env_args", "resize", "grey", "info_masks"
"""Settings that only some families of games read."""

_OWN = (
    "code is run only where it is asked for, so give --game path/to/my_env.py:MyEnv or my_package.envs:MyEnv"
    " to this program too."
)
_NAMES = (
    "ALE games (space_invaders), Gymnasium ids (CartPole-v1), mazes (maze:1 to maze:3, maze:4x4), "
    "vizdoom:my_way_home, malmo:1 to malmo:3, unity:3dball, pettingzoo:connect_four_v3, MinAtar's "
    "games (minatar:breakout), probes (probe:catch) and environments of your own "
    "(path/to/my_env.py:MyEnv) are known."
)


def canonical_game(game: str) -> str:
    """Returns the one name of a game: "ALE/SpaceInvaders-v5" and "SpaceInvaders" are "space_invaders".

    Raises:
        EnvError: no family knows the game; close names are suggested.
    """
    return _find(game)[1]


def describe_env(config: EnvConfig) -> EnvDescription:
    """Describes the environment that `make_env` would build.

    Raises:
        EnvError: the game is unknown or its observations or actions cannot be learned from.
    """
    family, game = _find(config.game)
    try:
        return family.describe(replace(config, game=game))
    except RAISED as error:
        raise failure_of(game, error) from error


def make_env(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    """Builds one environment per seed, in the process that will step it (see envs/__init__.py).

    Raises:
        EnvError: as `describe_env`; or a seed is outside [0, 2^31) or missing.
        EnvFailure: the environment raised an error of its own.
    """
    family, game = _find(config.game)
    try:
        env = family.make(replace(config, game=game), checked_seeds(seeds, len(seeds)))
    except RAISED as error:
        raise failure_of(game, error) from error
    env.game = game
    return env


def check_reads(config: EnvConfig, games: Sequence[str]) -> None:
    """Raise EnvError where one of FAMILY_SETTINGS is given, and no game's family reads it."""
    for name in FAMILY_SETTINGS:
        if getattr(config, name) and not any(name in _find(game)[0].reads for game in games):
            raise EnvError(f"{flag_of(name)} would change nothing in {' and '.join(games)}: leave it out.")


def check_needs(games: Sequence[str]) -> None:
    """Raise EnvError where a game can be described here, and not played: its package or build is missing."""
    for family, game in map(_find, games):
        if family.needs is not None:
            family.needs(game)


def share_env(configs: Sequence[EnvConfig], seeds: Sequence[int]) -> Any:
    """What several runs play together, each its part (multi.barrier.Tables); None: seats of one game.

    Raises:
        EnvError: the runs do not fit together.
    """
    family, _ = _find(configs[0].game)
    return None if family.share is None else family.share(configs, seeds)


def family_name(game: str) -> str:
    """Which of FAMILIES knows it; "" where none does."""
    found = zip(FAMILIES, _families(), strict=True)
    return next((name for name, family in found if family.canonical_name(game) is not None), "")


def make_playback(config: EnvConfig, seed: int) -> Playback:
    """Builds the replay of the episode that starts when an environment is reset with `seed`.

    Raises:
        EnvError: as `describe_env`; or the environment cannot draw itself.
        EnvFailure: the environment raised an error of its own.
    """
    family, game = _find(config.game)
    (seed,) = checked_seeds([seed], 1)
    try:
        return family.playback(replace(config, game=game), seed)
    except RAISED as error:
        raise failure_of(game, error) from error


def _families() -> Iterator[Family]:
    for name in FAMILIES:
        yield import_module(f"{__package__}.{name}").FAMILY


def _find(game: str) -> tuple[Family, str]:
    for family in _families():
        name = family.canonical_name(game)
        if name is not None:
            return family, name
    if names_code(game):
        raise EnvError(f"No environment is called {game!r} in this process: {_OWN}")
    known = {name.lower(): name for family in _families() for name in family.known_names()}
    kind = [name for name in known if name.startswith(f"{game.lower().partition(':')[0]}:")]
    near = get_close_matches(game.lower(), kind, cutoff=0) if kind else get_close_matches(game.lower(), known)
    close = [known[name] for name in near]
    advice = f"did you mean {' or '.join(close)}?" if close else _NAMES
    raise EnvError(f"No environment is called {game!r}: {advice}")
