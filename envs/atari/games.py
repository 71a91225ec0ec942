"""Names of ALE games, and what all of them have in common."""

import re
from functools import cache

from ale_py import roms

from envs.config import EnvConfig

SCREEN = (84, 84)  # height, width of a frame [pixels]; Mnih et al. 2015
NUM_ACTIONS = 18  # the full action set of every game; Machado et al. 2018, section 3.1.2
FRAMES_PER_SECOND = 60  # NTSC
_TWO_PLAYERS_ONLY = frozenset({"combat", "joust", "maze_craze", "warlords"})  # ale-py registers none of them
_ROOM_BYTES = {"montezuma_revenge": 3}  # of the console's memory; Anand et al. 2019, arXiv:1906.08226
_NAME = re.compile(r"ALE/(?P<registered>\w+)-v\d+|(?P<plain>[\w ]+)")
_SABER_HOURS = 100  # Toromanoff et al. 2019
_CLASSIC_MINUTES = 30  # Bellemare et al. 2013


@cache
def all_games() -> tuple[str, ...]:
    """Returns the snake-case names of all games that one player can play."""
    return tuple(sorted(set(roms.get_all_rom_ids()) - _TWO_PLAYERS_ONLY))


def canonical_name(game: str) -> str | None:
    """Returns "space_invaders" for "ALE/SpaceInvaders-v5" and "SpaceInvaders"; None for no ALE game."""
    match = _NAME.fullmatch(game)
    return _by_letters().get(_letters(match["registered"] or match["plain"])) if match else None


def room_byte(game: str) -> int | None:
    """Returns which of the 128 bytes of memory holds the room's number; None for a game without rooms."""
    return _ROOM_BYTES.get(game)


def episode_cap(config: EnvConfig) -> int:
    """Returns the emulator frames after which an episode is truncated: 100 hours, 30 minutes, or as set."""
    if config.max_episode_steps:
        return config.max_episode_steps * config.action_repeat
    minutes = _CLASSIC_MINUTES if config.disable_saber_mode else _SABER_HOURS * 60
    return minutes * 60 * FRAMES_PER_SECOND


@cache
def _by_letters() -> dict[str, str]:
    return {_letters(game): game for game in all_games()}


def _letters(name: str) -> str:
    return re.sub(r"[_ ]", "", name).lower()
