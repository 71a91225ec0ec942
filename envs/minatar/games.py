"""What is known of MinAtar's games without the package (Young, Tian 2019, table 1)."""

import numpy as np
from gymnasium.spaces import Box

SIDE = 10
"""Rows and columns of a frame."""
ACTIONS = 6
"""Nothing, left, up, right, down, fire: all of them in every game, as in the paper."""
STICKY = 0.1
"""Chance that the last action is repeated instead: the paper's, and the package's default."""
CHANNELS = {"asterix": 4, "breakout": 4, "freeway": 7, "seaquest": 10, "space_invaders": 6}
"""Game -> kinds of objects, one channel each."""


def frame_space(name: str) -> Box:
    """Of one frame: uint8 [10, 10, channels], 255 where an object is."""
    return Box(0, 255, (SIDE, SIDE, CHANNELS[name]), np.uint8)
