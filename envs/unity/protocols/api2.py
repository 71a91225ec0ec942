"""ML-Agents' first protocol ("API-2", of 2017).

The player connects to the port that --port names and says as JSON what it has. From then on it is asked, and
answers:

    RESET  -> anything; then parameters as JSON       -> one state per brain, then True or False
    STEP   -> anything; then actions as JSON          -> the same
    EXIT

A state is its length, a little-endian integer of 4 bytes, and JSON; after it come the pictures of each
camera, body by body, as PNG with its length. Each is acknowledged by RECEIVED. The last word, True, says that
the whole scene has reached its time limit and wants a RESET. Public description: PyPI's unityagents 0.2.0.
"""

import json
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from envs.playback import Frames
from envs.unity.protocols.bodies import Actions, Bodies, Brain, Camera, PlayerFailed, PlayerLimits

_LENGTH = struct.Struct("<I")
_LONGEST = 64 * 2**20  # bytes of a message; a picture of 1920 x 1080 has less
_GREETING = 2**20  # bytes that the first message may have
_VERSION = "API-2"


class FirstProtocol:
    """The conversation with a player that has connected. Any method may raise an OSError, as PlayerFailed."""

    brains: dict[str, Brain]
    reset_parameters: dict[str, float] | None  # with their defaults, where the protocol names them

    def __init__(self, connection: socket.socket, limits: PlayerLimits) -> None:
        self._socket, self._limits = connection, limits
        self.watched = set[str]()  # brains whose pictures are decoded
        connection.settimeout(limits.reply)
        try:
            self._read_greeting()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise PlayerFailed(f"sent a greeting that is not {_VERSION} ({error!r})") from error

    def reset(self, parameters: Mapping[str, float]) -> dict[str, Bodies]:
        """Starts the whole scene anew; returns the bodies of each brain."""
        self._send(b"RESET")
        self._word()
        self._send(json.dumps({"train_model": True, "parameters": dict(parameters)}).encode())
        return self._states()[0]

    def step(self, actions: Actions) -> tuple[dict[str, Bodies], bool]:
        """Takes actions for the first n bodies of each brain that has some; all others take action 0.

        Returns:
            the bodies of those brains, and whether the scene is over and wants a reset.
        """
        taken = {name: _nothing(self.brains[name], count) for name, count in self._bodies_of.items()}
        for name, chosen in actions.items():
            taken[name][: len(chosen)] = chosen.reshape(len(chosen), *taken[name].shape[1:])
        self._send(b"STEP")
        self._word()
        flat = {name: chosen.ravel().tolist() for name, chosen in taken.items()}
        nothing = {name: [0.0] * count for name, count in self._bodies_of.items()}
        message = {"action": flat, "memory": {name: [] for name in taken}, "value": nothing}
        self._send(json.dumps(message).encode())
        return self._states()

    def close(self) -> None:
        """Asks the player to end."""
        with suppress(OSError):
            self._send(b"EXIT")
        self._socket.close()

    def _read_greeting(self) -> None:
        said = json.loads(self._greeting())
        if said["apiNumber"] != _VERSION:
            raise ValueError(f"it speaks {said['apiNumber']}")
        found = dict(
            zip(said["brainNames"], map(_brain, said["brainNames"], said["brainParameters"]), strict=True)
        )
        self.brains = {name: found[name] for name in said["externalBrainNames"] or []}
        self.reset_parameters = {name: float(value) for name, value in said["resetParameters"].items()}
        self._all = found

    def _greeting(self) -> bytes:
        """The first message, which has no length: it is whole once it is JSON."""
        data = b""
        while len(data) < _GREETING:
            data += self._word()
            with suppress(ValueError):
                json.loads(data)
                return data
        raise ValueError("its first message does not end")

    def _states(self) -> tuple[dict[str, Bodies], bool]:
        states = dict[str, Bodies]()
        try:
            for _ in self._all:
                said = self._framed_json()
                brain = self._all[said["brain_name"]]
                states[brain.name] = self._bodies(brain, said)
            over = self._word() == b"True"
            self._bodies_of = {name: len(states[name].rewards) for name in self.brains}
            return {name: states[name] for name in self.brains}, over
        except (KeyError, TypeError) as error:
            raise PlayerFailed(f"sent a state that is not {_VERSION} ({error!r})") from error

    def _bodies(self, brain: Brain, said: Mapping[str, Any]) -> Bodies:
        count = len(said["agents"])
        sent = [self._framed() for _ in brain.cameras for _ in range(count)]
        try:
            numbers = np.array(said["states"], np.float32).reshape(count, brain.numbers)
            rewards, ended = np.array(said["rewards"], np.float64), np.array(said["dones"], np.bool_)
        except ValueError as error:
            raise PlayerFailed(f"describes {count} bodies by other numbers than it announced") from error
        if not len(rewards) == len(ended) == count:
            raise PlayerFailed(f"rewards {len(rewards)} of {count} bodies")
        seen = None
        if sent and brain.name in self.watched:
            seen = np.stack([_picture(data, brain.cameras[0]) for data in sent[:count]])
        return Bodies(numbers, seen, None, rewards, ended, np.zeros(count, np.bool_), None)

    def _framed_json(self) -> dict[str, Any]:
        try:
            said = json.loads(self._framed())
        except ValueError as error:
            raise PlayerFailed("sends a message that is no JSON") from error
        if not isinstance(said, dict) or said.get("brain_name") not in self._all:
            raise PlayerFailed("tells of a brain that it has not announced")
        return said

    def _framed(self) -> bytes:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > _LONGEST:
            raise PlayerFailed(f"announces a message of {length} bytes")
        data = self._exactly(length)
        self._send(b"RECEIVED")
        return data

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            data += self._word(count - len(data))
        return bytes(data)

    def _word(self, most: int = 12000) -> bytes:
        try:
            data = self._socket.recv(most)
        except TimeoutError as error:
            raise PlayerFailed(f"has not answered for {self._limits.reply:g} seconds") from error
        if not data:
            raise PlayerFailed("has closed its connection")
        return data

    def _send(self, data: bytes) -> None:
        self._socket.sendall(data)


def _nothing(brain: Brain, bodies: int) -> npt.NDArray[np.float64]:
    return np.zeros((bodies, brain.actions) if brain.continuous else bodies)


def _picture(sent: bytes, camera: Camera) -> Frames:
    data = np.frombuffer(sent, np.uint8)
    kind = cv2.IMREAD_GRAYSCALE if camera.channels == 1 else cv2.IMREAD_COLOR
    picture = cv2.imdecode(data, kind) if sent else None
    if picture is None or picture.shape[:2] != (camera.height, camera.width):
        raise PlayerFailed("sends a picture that is none of its camera's")
    frame: Frames = picture.astype(np.uint8)
    return frame if camera.channels == 1 else frame[..., ::-1].copy()  # from BGR


def _brain(name: str, said: Mapping[str, Any]) -> Brain:
    discrete_states = said["stateSpaceType"] == 0  # one number, the state's index
    cameras = (
        Camera(each["height"], each["width"], 1 if each["blackAndWhite"] else 3)
        for each in said["cameraResolutions"]
    )
    numbers = 1 if discrete_states else said["stateSize"]
    return Brain(name, numbers, said["actionSize"], said["actionSpaceType"] == 1, tuple(cameras))
