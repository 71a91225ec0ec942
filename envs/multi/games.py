"""Finds and builds games with PettingZoo's API."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol

import ale_py

from envs.config import EnvConfig, EnvError, optional_package
from envs.gym import constructor_arguments

PREFIX = "pettingzoo:"
_ROOMS = ("classic", "butterfly", "atari", "sisl")


class Build(Protocol):
    """Makes a game, for pictures where a render mode is given."""

    def __call__(self, config: EnvConfig, render_mode: str | None = None) -> Any:
        """Raises EnvError."""


def known_names() -> Sequence[str]:
    """The games of the PettingZoo that is installed."""
    return [PREFIX + name for name in _all_names()]


def build(config: EnvConfig, render_mode: str | None = None) -> Any:
    """A game, of moves at the same time (ParallelEnv) where it has such a form, else by turns (AECEnv).

    Raises:
        EnvError: there is no such game, or it cannot be built.
    """
    optional_package("pettingzoo", config.game, extra="multi")
    name, arguments = config.game.removeprefix(PREFIX), constructor_arguments(config)
    room = next((room for room in _ROOMS if name in _names_in(room)), None)
    if room is None:
        known = [PREFIX + each for each in get_close_matches(name.lower(), _all_names())]
        advice = f"did you mean {' or '.join(known)}?" if known else f"it has {', '.join(known_names())}."
        raise EnvError(f"PettingZoo has no game {name}: {advice}")
    try:
        module = importlib.import_module(f"pettingzoo.{room}.{name}")
        make = getattr(module, "parallel_env", None) or module.raw_env
        drawn = {} if render_mode is None else {"render_mode": render_mode}
        return make(**(_roms() if room == "atari" else {}), **drawn, **arguments)
    except ImportError as error:
        lacking = f" ({error.name})" if error.name else ""
        raise EnvError(
            f"{config.game} needs more packages{lacking}: `pip install 'pettingzoo[{room}]'` gets them."
        ) from error
    except (TypeError, AttributeError) as error:
        raise EnvError(f"The environment {config.game} could not be built: {error}.") from error


def is_atari(config: EnvConfig) -> bool:
    """Whether it is one of Atari's games: --action-repeat and --proba-sticky-actions are for them."""
    return config.game.startswith(PREFIX) and config.game.removeprefix(PREFIX) in _names_in("atari")


def is_by_turns(game: Any) -> bool:
    """Whether seats move one after the other."""
    return hasattr(game, "agent_iter")


def _roms() -> dict[str, str]:
    """Atari's games of several players take the ROMs that ale-py brings."""
    return {"auto_rom_install_path": str(Path(ale_py.__file__).parent / "roms")}


def _all_names() -> Sequence[str]:
    return [name for room in _ROOMS for name in _names_in(room)]


def _names_in(room: str) -> Sequence[str]:
    if importlib.util.find_spec("pettingzoo") is None:
        return []
    found = importlib.util.find_spec(f"pettingzoo.{room}")
    places = found.submodule_search_locations if found is not None else None
    return [each.name for each in pkgutil.iter_modules(places) if "_v" in each.name] if places else []
