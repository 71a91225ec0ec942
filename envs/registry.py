"""Finds the family of a game. A new kind of environment is one more entry of FAMILIES."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module

from envs.config import EnvConfig, EnvDescription, EnvError
from envs.contract import Family, SeededVectorEnv
from envs.playback import Playback

FAMILIES = ("probe", "atari", "minatar", "maze", "vizdoom", "malmo", "gym")
"""Modules of envs/ with an object FAMILY; the first that knows a game's name has it. Each is imported when a
name is looked up, so that `import envs` needs no emulator.
"""

_NAMES = (
    "ALE games (space_invaders), Gymnasium ids (CartPole-v1), mazes (maze:1 to maze:3, maze:4x4), "
    "vizdoom:my_way_home, malmo:1 to malmo:3, MinAtar's games (minatar:breakout) and probes (probe:catch) "
    "are known."
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
    return family.describe(replace(config, game=game))


def make_env(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    """Builds one environment per seed, in the process that will step it (see envs/contract.py).

    Raises:
        EnvError: as `describe_env`; or a seed is outside [0, 2^31) or missing.
    """
    family, game = _find(config.game)
    return family.make(replace(config, game=game), seeds)


def make_playback(config: EnvConfig, seed: int) -> Playback:
    """Builds the replay of the episode that starts when an environment is reset with `seed`.

    Raises:
        EnvError: as `describe_env`; or the environment cannot draw itself.
    """
    family, game = _find(config.game)
    return family.playback(replace(config, game=game), seed)


def _families() -> Iterator[Family]:
    for name in FAMILIES:
        yield import_module(f"envs.{name}").FAMILY


def _find(game: str) -> tuple[Family, str]:
    for family in _families():
        name = family.canonical_name(game)
        if name is not None:
            return family, name
    known = {name.lower(): name for family in _families() for name in family.known_names()}
    kind = [name for name in known if name.startswith(f"{game.lower().partition(':')[0]}:")]
    near = get_close_matches(game.lower(), kind, cutoff=0) if kind else get_close_matches(game.lower(), known)
    close = [known[name] for name in near]
    advice = f"did you mean {' or '.join(close)}?" if close else _NAMES
    raise EnvError(f"No environment is called {game!r}: {advice}")
