"""The board: a row per environment in memory that AleProcesses and its workers share."""

import mmap

import numpy as np
import numpy.typing as npt

from envs.atari.games import SCREEN

Row = npt.NDArray[np.void]

ROW = np.dtype(
    [
        ("action", np.int64),
        ("restart", np.bool_),  # by a reset
        ("seed", np.int64),  # of that reset; below 0: none
        ("frame", np.uint8, SCREEN),
        ("reward", np.int32),
        ("terminated", np.bool_),
        ("truncated", np.bool_),
        ("lives", np.int32),
        ("frame_number", np.int32),
        ("episode_frame_number", np.int32),
        ("room", np.int64),
    ],
    align=True,
)
"""One environment. The first three fields are AleProcesses' to write, the others its worker's."""


INFOS = ("lives", "frame_number", "episode_frame_number", "room")
"""Fields that are infos as well."""


def board_of(memory: mmap.mmap) -> Row:
    """Returns the rows [N] that lie in `memory`."""
    return np.frombuffer(memory, ROW)
