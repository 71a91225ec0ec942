"""What ML-Agents' side channels carry to a player: parameters of its scene, and how fast time passes there.

A message is the channel's UUID (little-endian), the length of what follows, and that: all integers and floats
have 4 bytes, little-endian. Public description: PyPI's mlagents-envs 1.1.0.
"""

import struct
from uuid import UUID

_PARAMETERS = UUID("534c891e-810f-11ea-a9d0-822485860400")
_ENGINE = UUID("e951342c-4f7e-11ea-b238-784f4387d1f7")
_FLOAT = 0
_TIME_SCALE, _TARGET_FRAME_RATE, _CAPTURE_FRAME_RATE = 2, 3, 4
TIME_SCALE = 20.0
"""Seconds of the scene per second of ours, at most: the default of mlagents-learn, as is the next line."""
_FRAMES_PER_SECOND = 60  # of the scene's time: how long one frame lasts does not depend on the machine


def float_parameter(name: str, value: float) -> bytes:
    """Sets a parameter of the scene."""
    said = name.encode("ascii", "replace")
    return _message(_PARAMETERS, struct.pack("<i", len(said)) + said + struct.pack("<if", _FLOAT, value))


def engine_settings(time_scale: float) -> bytes:
    """Lets the scene's time pass `time_scale` times as fast, and draws as many frames as the machine can."""
    return b"".join(
        [
            _message(_ENGINE, struct.pack("<if", _TIME_SCALE, time_scale)),
            _message(_ENGINE, struct.pack("<ii", _TARGET_FRAME_RATE, -1)),
            _message(_ENGINE, struct.pack("<ii", _CAPTURE_FRAME_RATE, _FRAMES_PER_SECOND)),
        ]
    )


def _message(channel: UUID, said: bytes) -> bytes:
    return channel.bytes_le + struct.pack("<i", len(said)) + said
