"""Names of ALE games, SABER's rules for all of them, and ALE's own vector environment.

ale_py.AtariVectorEnv (0.12.1) turns on by default what SABER forbids: reward clipping, no-ops and FIRE at a
reset, no sticky actions, the minimal action set. All of it is set here by hand; of
these, flags turn on no-ops and the minimal set. Further facts about it:

* A reset with a seed sets ALE's `random_seed` and loads the ROM again; one without a seed (an autoreset) lets
  the generator run on. The generator decides sticky actions; no-ops have another (envs/atari/noops.py).
* `options={"reset_mask": …}` takes one seed per marked environment and reports the others unchanged.
* A frame is the pixelwise maximum of the last two grey pictures, shrunk with OpenCV's INTER_AREA. (Toromanoff
  et al. 2019 first shrank each with INTER_LINEAR: their pixels differ.) The emulator frame that ends an
  episode is not captured, so that in an episode's last frame the previous one still shines through.
* Its actions are places among those that the game knows: 9 in Skiing and Lost Luggage, which read no button,
  the full 18 in all others. It waits forever for one that is out of range.
"""

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ale_py import ALEInterface, LoggerMode, roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from envs.config import EnvConfig, EnvError
from envs.contract import Actions

SCREEN = (84, 84)  # height, width of a frame [pixels]; Mnih et al. 2015
NUM_ACTIONS = 18  # the full action set of every game; Machado et al. 2018, section 3.1.2
FRAMES_PER_SECOND = 60  # NTSC
ROLLOVER = -900_000  # the threshold of Toromanoff et al. 2019
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


def rom_of(game: str) -> Path:
    """The file of a game. Raises EnvError where ALE has no such game."""
    path = roms.get_rom_path(game)
    if path is None:
        raise EnvError(f"ALE has no game called {game}.")
    return path


def actions_of(config: EnvConfig) -> tuple[int, ...]:
    """ALE's number of each of the agent's actions: all 18, or the minimal ones."""
    return minimal_actions(config.game) if config.minimal_actions else tuple(range(NUM_ACTIONS))


@cache
def minimal_actions(game: str) -> tuple[int, ...]:
    """The actions that a game reads, in ascending order: 3 to 18 of them, the first of which does nothing."""
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.loadROM(rom_of(game))
    return tuple(action.value for action in ale.getMinimalActionSet())


def room_byte(game: str) -> int | None:
    """Returns which of the 128 bytes of memory holds the room's number; None for a game without rooms."""
    return _ROOM_BYTES.get(game)


def episode_cap(config: EnvConfig) -> int:
    """Returns the emulator frames after which an episode is truncated: 100 hours, 30 minutes, or as set."""
    if config.max_episode_steps:
        return config.max_episode_steps * config.action_repeat
    minutes = _CLASSIC_MINUTES if config.disable_saber_mode else _SABER_HOURS * 60
    return minutes * 60 * FRAMES_PER_SECOND


def without_rollover(rewards: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Returns the rewards [N] with every rolled-over counter's range added back.

    ALE's reward is the difference of two readings of the score in the console's memory, so that a counter
    which starts again at 0 shows as one large negative reward: docs/architecture.md, section 14, has the
    games' ranges. The points won in the same step soften the fall a little. 2,000 random steps of each of the
    104 games met no reward below -2,000, so that one rule serves every game: a fall below -900,000 is made
    good by the power of ten just above it.
    """
    corrected = rewards.astype(np.float64)
    fallen = corrected < ROLLOVER
    corrected[fallen] += 10.0 ** np.ceil(np.log10(-corrected[fallen]))
    return corrected


def stuck_cap(config: EnvConfig) -> float:
    """Returns the agent steps without reward after which an episode is stopped; infinite outside SABER."""
    if config.disable_saber_mode:
        return math.inf
    return math.ceil(config.max_stuck_time * FRAMES_PER_SECOND / config.action_repeat)


@cache
def _by_letters() -> dict[str, str]:
    return {_letters(game): game for game in all_games()}


def _letters(name: str) -> str:
    return re.sub(r"[_ ]", "", name).lower()


class AleThreads(AtariVectorEnv):
    """`count` copies of the game, which C++ threads play under SABER's settings with the protocol's cap.

    All games take the same 18 actions: those that a game does not know do nothing, as on ALEInterface.
    """

    def __init__(self, config: EnvConfig, count: int) -> None:
        super().__init__(
            config.game,
            count,
            max_num_frames_per_episode=episode_cap(config),
            repeat_action_probability=config.proba_sticky_actions,
            full_action_space=True,
            autoreset_mode=AutoresetMode.NEXT_STEP,
            img_height=SCREEN[0],
            img_width=SCREEN[1],
            grayscale=True,
            stack_num=1,
            frameskip=config.action_repeat,
            maxpool=True,
            noop_max=config.noop_max,
            episodic_life=False,
            life_loss_info=False,
            reward_clipping=False,
            use_fire_reset=False,
        )
        self._places = np.zeros(NUM_ACTIONS, np.int64)  # 0 is that of NOOP
        for place, action in enumerate(self.ale.get_action_set()):
            self._places[action.value] = place

    def step(self, actions: Actions) -> Any:
        """As AtariVectorEnv's, for actions of 0 to 17."""
        return super().step(self._places[actions])
