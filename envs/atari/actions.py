"""Which of ALE's 18 actions an agent chooses among."""

from functools import cache

from ale_py import ALEInterface, LoggerMode

from envs.atari.games import NUM_ACTIONS, rom_of
from envs.config import EnvConfig


def actions_of(config: EnvConfig) -> tuple[int, ...]:
    """ALE's number of each of the agent's actions: all 18, or the minimal ones."""
    return minimal_actions(config.game) if config.minimal_actions else tuple(range(NUM_ACTIONS))


@cache
def minimal_actions(game: str) -> tuple[int, ...]:
    """Those that the game reads, in ascending order: 3 to 18 of them, the first of which does nothing."""
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.loadROM(rom_of(game))
    return tuple(action.value for action in ale.getMinimalActionSet())
