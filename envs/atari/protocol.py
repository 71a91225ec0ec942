"""How long an episode may last under SABER, and the correction of scores whose counter rolled over.

SABER (Toromanoff, Wirbel, Moutarde 2019, arXiv:1908.04683) takes over from Machado et al. 2018
(arXiv:1709.06009) 18 actions, sticky actions and no signal at the loss of a life. It caps an episode at 100
hours instead of 30 minutes and stops it after five minutes without any reward.

ALE's reward is the difference of two readings of the score in the console's memory, so that a counter which
starts again at 0 shows as one large negative reward. What ale-py 0.12.1 does, found by bringing the score's
bytes near their maximum with ALEInterface.setRAM (tests/envs/test_score_rollover.py does it again):

    game            range of the counter   remarks
    asterix                    1,000,000
    video_pinball              1,000,000
    defender                   1,000,000   rewards are the points shown: neither the factor 100 nor the first
                                           reward of 10 that the ALE of 2019 had, so nothing to divide
    atlantis                 100,000,000   the screen starts again after 999,900, but ALE reads on in a third
                                           byte: nothing happens at 10^6, and at 10^8 the same as above

The points won in the same step soften the fall a little. 2,000 random steps of each of the 104 games met no
reward below -2,000, so that one rule serves every game, also those outside the table: a fall below -900,000
is made good by the power of ten just above it.
"""

import math

import numpy as np
import numpy.typing as npt

from envs.config import EnvConfig

FRAMES_PER_SECOND = 60  # NTSC
_SABER_HOURS = 100
_CLASSIC_MINUTES = 30  # Bellemare et al. 2013
_ROLLOVER = -900_000  # the seed system's threshold


def episode_cap(config: EnvConfig) -> int:
    """Returns the emulator frames after which an episode is truncated: 100 hours, 30 minutes, or as set."""
    if config.max_episode_steps:
        return config.max_episode_steps * config.action_repeat
    minutes = _CLASSIC_MINUTES if config.disable_saber_mode else _SABER_HOURS * 60
    return minutes * 60 * FRAMES_PER_SECOND


def stuck_cap(config: EnvConfig) -> float:
    """Returns the agent steps without reward after which an episode is stopped; infinite outside SABER."""
    if config.disable_saber_mode:
        return math.inf
    return math.ceil(config.max_stuck_time * FRAMES_PER_SECOND / config.action_repeat)


def without_rollover(rewards: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Returns the rewards [N] with every rolled-over counter's range added back."""
    corrected = rewards.astype(np.float64)
    fallen = corrected < _ROLLOVER
    corrected[fallen] += 10.0 ** np.ceil(np.log10(-corrected[fallen]))
    return corrected
