"""One connection to a Minecraft client in MalmoEnv's protocol (Malmo 0.37), with a time limit on everything.

A message is its length, a big-endian integer of 4 bytes, and then its bytes. The program sends a greeting, to
which there is no answer, and then requests:

    <MissionInit …>, token          -> 1 if the mission starts, else 0; turn key (empty: nobody takes turns)
    <Peek/>                         -> picture, or nothing yet; done
    <Step3>commands</Step3 >        -> picture; reward, done, whether the commands were taken
    <Quit/>                         -> 1 once the mission is over, else 0

Step3 is the step without turn key and information. The blank before its last bracket belongs to it: Minecraft
cuts the commands out by counting characters. A picture is raw RGB, its lowest row first.

Minecraft runs on while the agent thinks. A step is answered with the newest picture and the rewards since the
last step, then the commands are carried out: what they do shows in the next step.
"""

import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

_NUMBER, _DONE, _STEP = struct.Struct("!I"), struct.Struct("!b"), struct.Struct("!dbb")
_LONGEST = 64 * 2**20  # bytes; a picture of 1920 x 1080 has 6 MB


@dataclass(frozen=True)
class MalmoLimits:
    """Seconds after which a client counts as crashed, or the user is asked for help."""

    connect: float = 10.0  # until a connection stands; also how long a first client is looked for
    reply: float = 20.0  # for one whole message; Minecraft answers within 3, if without a picture
    start: float = 180.0  # from a mission's message to its first picture (MalmoEnv's own limit)
    picture: float = 60.0  # for a picture within a mission
    retry: float = 0.1  # pause before Minecraft, which was not ready, is asked once more
    rest: float = 1.0  # pause of a client after a crash, doubled with each further crash in a row
    longest_rest: float = 60.0  # largest `rest` after doubling
    patience: float = 600.0  # how long an episode waits for a client, once one was met
    poll: float = 0.05  # pause before the clients' locks are tried once more


class ClientFailed(OSError):
    """A Minecraft client does not do what is due; the message states the failure."""


class ClientAddress(NamedTuple):
    """Where a Minecraft client listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Connection:
    """A connection for one mission; every method may raise an OSError, as ClientFailed."""

    def __init__(self, address: ClientAddress, picture_size: int, limits: MalmoLimits) -> None:
        """`picture_size`: bytes of a picture."""
        self._picture_size, self._limits = picture_size, limits
        self._socket = socket.create_connection(address, limits.connect)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self, mission_init: bytes, token: bytes) -> bytes:
        """Starts a mission and returns its first picture."""
        until = time.monotonic() + self._limits.start
        self._send(b"<MalmoEnv0.37.0/>")
        while not self._ask_to_start(mission_init, token):
            self._pause(until, "did not start the mission")
        while True:
            self._send(b"<Peek/>")
            picture, (done,) = self._receive_picture(), self._receive_struct(_DONE)
            if picture:
                return picture
            if done:
                raise ClientFailed("ended the mission before its first picture")
            self._pause(until, "sent no first picture")

    def step(self, commands: bytes) -> tuple[bytes, float, bool]:
        """Sends commands, one on each line.

        Returns:
            Once Minecraft took them: the picture, empty only where the mission is done; reward; done.
        """
        until = time.monotonic() + self._limits.picture
        while True:
            self._send(b"<Step3>" + commands + b"</Step3 >")
            picture, (reward, done, taken) = self._receive_picture(), self._receive_struct(_STEP)
            if done or (picture and taken):
                return picture, reward, bool(done)
            self._pause(until, "sent no picture")

    def quit(self) -> None:
        """Ends a running mission."""
        until = time.monotonic() + self._limits.picture
        self._send(b"<Quit/>")
        while self._receive_struct(_NUMBER) == (0,):
            self._pause(until, "did not end the mission")
            self._send(b"<Quit/>")

    def close(self) -> None:
        """Closes the connection, after Minecraft did: what it does then must not meet the next mission."""
        until = time.monotonic() + self._limits.reply
        with self._socket, suppress(OSError):  # it is gone already
            self._socket.shutdown(socket.SHUT_WR)
            while self._receive_part(2**16, until):
                pass

    def abandon(self) -> None:
        """Closes the connection at once."""
        self._socket.close()

    def _ask_to_start(self, mission_init: bytes, token: bytes) -> bool:
        self._send(mission_init)
        self._send(token)
        started = self._receive_struct(_NUMBER) == (1,)
        self._receive()  # the turn key
        return started

    def _pause(self, until: float, complaint: str) -> None:
        if time.monotonic() >= until:
            raise ClientFailed(complaint)
        time.sleep(self._limits.retry)

    def _send(self, message: bytes) -> None:
        self._socket.settimeout(self._limits.reply)
        self._socket.sendall(_NUMBER.pack(len(message)) + message)

    def _receive_struct(self, form: struct.Struct) -> tuple[float, ...]:
        message = self._receive()
        if len(message) != form.size:
            raise ClientFailed(f"sent {len(message)} bytes where {form.size} were due")
        return form.unpack(message)

    def _receive_picture(self) -> bytes:
        picture = self._receive()
        if len(picture) not in (0, self._picture_size):
            raise ClientFailed(f"sent a picture of {len(picture)} bytes where {self._picture_size} were due")
        return picture

    def _receive(self) -> bytes:
        until = time.monotonic() + self._limits.reply
        (length,) = _NUMBER.unpack(self._receive_bytes(_NUMBER.size, until))
        if length > _LONGEST:
            raise ClientFailed(f"announced a message of {length} bytes")
        return self._receive_bytes(length, until)

    def _receive_bytes(self, count: int, until: float) -> bytes:
        received = bytearray()
        while len(received) < count:
            part = self._receive_part(count - len(received), until)
            if not part:
                raise ClientFailed("closed the connection")
            received += part
        return bytes(received)

    def _receive_part(self, at_most: int, until: float) -> bytes:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._socket.recv(at_most)


def reason(failure: OSError) -> str:
    """What is wrong with a client, for a sentence that begins with its name."""
    if isinstance(failure, TimeoutError):
        return "gave no answer in time"
    return failure.strerror.lower() if failure.strerror else str(failure)
