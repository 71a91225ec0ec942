"""What a build of Unity has and what it says after a step, in whichever protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from envs.contract import Flags
from envs.playback import Frames


@dataclass(frozen=True)
class PlayerLimits:
    """Seconds after which a player counts as hung."""

    start: float = 60.0  # until it has connected and said what it has
    reply: float = 30.0  # for each message (unityagents' own limit)
    end: float = 2.0  # from the request to end until it is killed


class PlayerFailed(OSError):
    """The player does not do what is due; the message states the failure."""


class Camera(NamedTuple):
    """What a body sees."""

    height: int
    width: int
    channels: int  # 1: grey, 3: colours, others: several pictures


class Brain(NamedTuple):
    """A kind of bodies, with the same observations and actions. ML-Agents calls it a behavior today."""

    name: str
    numbers: int  # that describe the state of a body
    actions: int  # how many there are, or how many numbers a continuous one has
    continuous: bool
    cameras: tuple[Camera, ...]
    mixed: bool = False  # whether a body takes actions of both kinds at once
    has_rules: bool = False  # whether the protocol says which of the actions are legal


class Bodies(NamedTuple):
    """The B bodies of one brain after a step."""

    numbers: npt.NDArray[np.float32]  # [B, numbers]
    pictures: Frames | None  # of the first camera of a brain that is watched, uint8 [B, h, w] or [B, h, w, 3]
    legal: Flags | None  # [B, A] where the protocol says which actions are
    rewards: npt.NDArray[np.float64]  # [B]
    ended: Flags  # [B] whether an episode did; all of the above but its reward is the next one's then
    truncated: Flags  # [B] whether a limit of steps ended it
    last: "Bodies | None"  # where the protocol says how ended episodes looked at their end


Actions = Mapping[str, npt.NDArray[Any]]
"""Of each brain's first n bodies, [n] or [n, A]."""
