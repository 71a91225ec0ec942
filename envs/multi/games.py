"""Finds and builds games with PettingZoo's API, and says what one seat sees and does."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import ale_py
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space

from envs.config import EnvConfig, EnvError, optional_package
from envs.gym import constructor_arguments
from envs.playback import Frames

PREFIX = "pettingzoo:"
LEAST_SIDE = 4
"""Cells of a board that is seen as an image; smaller ones are a few numbers."""
_ROOMS = ("classic", "butterfly", "atari", "sisl")


class Build(Protocol):
    """Makes a game, for pictures where a render mode is given."""

    def __call__(self, config: EnvConfig, render_mode: str | None = None) -> Any:
        """Raises EnvError."""


class Seat(NamedTuple):
    """What every seat of a game observes and does; they are alike."""

    observed: Box
    num_actions: int
    masked: bool
    """Whether observations say which actions are legal."""


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


def repeat_of(config: EnvConfig) -> int:
    """Steps of the game for which an action is taken: --action-repeat at Atari's games, 1 elsewhere."""
    is_atari = config.game.startswith(PREFIX) and config.game.removeprefix(PREFIX) in _names_in("atari")
    return config.action_repeat if is_atari else 1


def is_by_turns(game: Any) -> bool:
    """Whether seats move one after the other."""
    return hasattr(game, "agent_iter")


def seat_of(game: Any, name: str) -> Seat:
    """What its seats observe and do. Raises EnvError where two of them differ, or agents cannot play it."""
    first, *others = game.possible_agents
    observed, actions = game.observation_space(first), game.action_space(first)
    if any(game.observation_space(seat) != observed or game.action_space(seat) != actions for seat in others):
        raise EnvError(f"The seats of {name} see or do different things, so that no network can play all.")
    if not isinstance(actions, Discrete) or actions.start != 0:
        raise EnvError(f"The seats of {name} need discrete actions, counted from 0, not {actions}.")
    masked = isinstance(observed, Dict) and "action_mask" in observed.spaces
    box: Space[Any] = observed["observation"] if isinstance(observed, Dict) and masked else observed
    if not isinstance(box, Box):
        raise EnvError(f"What the seats of {name} observe must be an array, not {box}.")
    return Seat(box, int(actions.n), masked)


def is_board(seat: Seat) -> bool:
    """Whether it observes planes of zeros and ones, [h, w, planes], on at least 4 x 4 cells."""
    shape, box = seat.observed.shape, seat.observed
    has_cells = len(shape) == 3 and min(shape[:2]) >= LEAST_SIDE and shape[0] * shape[1] >= seat.num_actions
    return has_cells and bool((box.low == 0).all() and (box.high == 1).all())


def masked_space(seat: Seat) -> Box:
    """Frames of a game by turns, as envs/legal.py has them: images of boards, numbers of all others."""
    if is_board(seat):
        height, width, planes = seat.observed.shape
        return Box(0, 255, (height, width, planes + 1), np.uint8)
    low = np.concatenate([seat.observed.low.ravel(), np.zeros(seat.num_actions)])
    high = np.concatenate([seat.observed.high.ravel(), np.ones(seat.num_actions)])
    return Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)


def masked_frame(seat: Seat, observation: Any, info: Mapping[str, Any]) -> Frames:
    """One frame of `masked_space`; everything is legal where neither `observation` nor `info` says."""
    said = observation if seat.masked else info
    legal = said.get("action_mask", np.ones(seat.num_actions))
    seen = observation["observation"] if seat.masked else observation
    if not is_board(seat):
        return np.concatenate([np.ravel(seen), legal]).astype(np.float32)
    rules = np.zeros(seen.shape[:2])
    rules.flat[: len(legal)] = legal
    return np.dstack([seen, rules]).astype(np.uint8) * np.uint8(255)


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
