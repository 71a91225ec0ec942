"""A Unity player in a process of its own, and ML-Agents' first protocol with it ("API-2", of 2017).

The player is the client: it connects to the port that --port names and says as JSON what it has. From then on
it is asked, and answers:

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
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from envs.playback import Frames

_LENGTH = struct.Struct("<I")
_LONGEST = 64 * 2**20  # bytes of a message; a picture of 1920 x 1080 has less
_GREETING = 2**20  # bytes that the first message may have
_VERSION = "API-2"


@dataclass(frozen=True)
class TimeLimits:
    """Seconds after which a player counts as hung."""

    start: float = 60.0  # until it has connected and said what it has
    reply: float = 30.0  # for each message (unityagents' own limit)
    end: float = 2.0  # from EXIT until it is killed


class PlayerFailed(OSError):
    """The player does not do what is due; the message states the failure."""


class Camera(NamedTuple):
    """What a body sees."""

    height: int
    width: int
    grey: bool


class Brain(NamedTuple):
    """A kind of bodies, with the same observations and actions."""

    name: str
    numbers: int  # that describe the state of a body
    actions: int  # how many there are, or how many numbers a continuous one has
    continuous: bool
    cameras: tuple[Camera, ...]


class Bodies(NamedTuple):
    """The B bodies of one brain after a step."""

    numbers: npt.NDArray[np.float32]  # [B, numbers]
    pictures: Frames | None  # of the first camera, uint8 [B, h, w] or [B, h, w, 3]
    rewards: npt.NDArray[np.float64]  # [B]
    ended: npt.NDArray[np.bool_]  # [B] whether an episode did; numbers and pictures are the next one's then


class Player:
    """One running build. Every method may raise an OSError, as PlayerFailed.

    Args:
        program: the build's executable.
        limits: on the time of everything.
    """

    brains: dict[str, Brain]  # those that are steered from outside
    reset_parameters: dict[str, float]  # with their defaults

    def __init__(self, program: Path, limits: TimeLimits) -> None:
        self._limits = limits
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            port = str(listener.getsockname()[1])
            # Killed with the process that started it: an orphan would play on for ever.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", program, "-batchmode", "-nographics", "--port", port],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=program.parent,
            )
            try:
                self._socket = self._accept(listener)
            except OSError:
                self._kill()
                raise
        try:
            self._read_greeting()
        except (OSError, ValueError, KeyError) as error:
            self.close()
            raise PlayerFailed(f"says what nobody of {_VERSION} would say ({error!r})") from error

    def reset(self, parameters: Mapping[str, float]) -> dict[str, Bodies]:
        """Starts the whole scene anew; returns the bodies of each brain."""
        self._send(b"RESET")
        self._word()
        self._send(json.dumps({"train_model": True, "parameters": dict(parameters)}).encode())
        return self._states()[0]

    def step(self, actions: Mapping[str, npt.NDArray[Any]]) -> tuple[dict[str, Bodies], bool]:
        """Takes one action for each body of each brain, [B] or [B, A].

        Returns:
            the bodies of each brain, and whether the scene is over and wants a reset.
        """
        self._send(b"STEP")
        self._word()
        flat = {name: [float(number) for number in taken.ravel()] for name, taken in actions.items()}
        nothing = {name: [0.0] * len(taken) for name, taken in actions.items()}
        message = {"action": flat, "memory": {name: [] for name in actions}, "value": nothing}
        self._send(json.dumps(message).encode())
        return self._states()

    def close(self) -> None:
        """Ends the player."""
        with suppress(OSError):
            self._send(b"EXIT")
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(self._limits.end)
        self._kill()

    def _accept(self, listener: socket.socket) -> socket.socket:
        deadline = time.monotonic() + self._limits.start
        listener.settimeout(0.1)
        while time.monotonic() < deadline:
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                connection.settimeout(self._limits.reply)
                return connection
            if self._process.poll() is not None:
                raise PlayerFailed(f"ended with {self._process.returncode} before it had connected")
        raise PlayerFailed(f"did not connect within {self._limits.start:g} seconds")

    def _read_greeting(self) -> None:
        said = json.loads(self._greeting())
        if said["apiNumber"] != _VERSION:
            raise ValueError(f"it speaks {said['apiNumber']}")
        found = dict(
            zip(said["brainNames"], map(_brain, said["brainNames"], said["brainParameters"]), strict=True)
        )
        self._order = list(found)
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
        for _ in self._order:
            said = self._framed_json()
            brain = self._all[said["brain_name"]]
            states[brain.name] = self._bodies(brain, said)
        over = self._word() == b"True"
        return {name: states[name] for name in self.brains}, over

    def _bodies(self, brain: Brain, said: Mapping[str, Any]) -> Bodies:
        count = len(said["agents"])
        pictures = [self._picture(camera) for camera in brain.cameras for _ in range(count)]
        try:
            numbers = np.array(said["states"], np.float32).reshape(count, brain.numbers)
            rewards, ended = np.array(said["rewards"], np.float64), np.array(said["dones"], np.bool_)
        except ValueError as error:
            raise PlayerFailed(f"describes {count} bodies by other numbers than it announced") from error
        if not len(rewards) == len(ended) == count:
            raise PlayerFailed(f"rewards {len(rewards)} of {count} bodies")
        return Bodies(numbers, np.stack(pictures[:count]) if pictures else None, rewards, ended)

    def _picture(self, camera: Camera) -> Frames:
        data = np.frombuffer(self._framed(), np.uint8)
        picture = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE if camera.grey else cv2.IMREAD_COLOR)
        if picture is None or picture.shape[:2] != (camera.height, camera.width):
            raise PlayerFailed("sends a picture that is none of its camera's")
        frame: Frames = picture.astype(np.uint8)
        return frame if camera.grey else frame[..., ::-1].copy()  # from BGR

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

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _brain(name: str, said: Mapping[str, Any]) -> Brain:
    discrete_states = said["stateSpaceType"] == 0  # one number, the state's index
    cameras = (
        Camera(each["height"], each["width"], each["blackAndWhite"]) for each in said["cameraResolutions"]
    )
    numbers = 1 if discrete_states else said["stateSize"]
    return Brain(name, numbers, said["actionSize"], said["actionSpaceType"] == 1, tuple(cameras))
