"""Films: the same seed and the same actions once more, on environments that can draw themselves.

ale_py.AtariVectorEnv has no picture to show, so that an episode is filmed by replaying it: its seed and its
actions give, frame for frame, the same observations (tested), and beside them the RGB pictures.
"""

from envs.atari.playback import AlePlayback
from envs.contract import Playback
from envs.gym.playback import GymPlayback
from envs.registry import make_playback

__all__ = ["AlePlayback", "GymPlayback", "Playback", "make_playback"]
