"""A Minecraft client on paper: MalmoEnv's protocol byte by byte, over the world of tests/envs/malmo_world.py.

Written after Malmo's own server (MalmoEnvServer.java of Malmo 0.37.0), with what matters to its users:
commands are cut out by counting characters, a step is answered before it is carried out, rewards pile up
until they are fetched, a mission that is asked to quit does so a moment later, and the end of a connection
that started a mission makes whatever mission then runs quit. `Server.faults` makes it fail in many ways.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from tests.envs.malmo_world import World

HELLO = "<MalmoEnv"
VERSION = "0.37.0"
TAG = len("<Step_>")


@dataclass
class Faults:
    """How the client fails; numbers count down."""

    crash_at_step: int = 0  # in a mission, from 1
    silent: bool = False  # takes messages and answers none
    seconds_per_part: float = 0.0  # answers come in parts, each so long after the one before
    busy: int = 0  # missions that are not started
    late_pictures: int = 0  # peeks answered without a picture
    lost_pictures: int = 0  # steps answered without a picture, which take no commands
    blind_end: bool = False  # the end comes without a picture
    wrong_size: bool = False  # pictures of one byte too many
    dead_start: bool = False  # missions end before their first picture


class Server:
    """Listens on a free port of this machine; for use with `with`."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.messages: list[bytes] = []
        self.missions = 0
        self.world: World | None = None
        self._quit = False
        self._steps = 0
        self._state = threading.RLock()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.port = 0
        self.start()

    def start(self) -> None:
        """Starts, or starts again on the same port after a crash."""
        self._listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        self.port = self._listener.getsockname()[1]
        self._run(self._listen)

    def crash(self) -> None:
        """Ends as a killed process would: every connection is gone, nobody listens."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in list(self._sockets):
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            _close(each)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends it, and waits for its threads."""
        self.crash()
        for thread in self._threads:
            thread.join(10)

    def _run(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        listener = self._listener
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.add(connection)
            self._run(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        started = False
        with suppress(OSError, EOFError):
            hello = _receive(connection)
            if len(hello) > len(HELLO) + 8 or not hello.decode().startswith(HELLO + VERSION):
                raise EOFError
            while True:
                message = _receive(connection)
                with self._state:
                    self.messages.append(message)
                if not self.faults.silent:
                    started |= self._answer(connection, message.decode())
        with self._state:
            self._quit |= started
        self._sockets.discard(connection)
        _close(connection)

    def _answer(self, connection: socket.socket, message: str) -> bool:
        """Returns whether the message started a mission."""
        if message.startswith("<MissionInit"):
            return self._init(connection, message)
        if message.startswith("<Step"):
            self._step(connection, message)
        elif message.startswith("<Peek"):
            self._peek(connection)
        elif message.startswith("<Quit"):
            with self._state:
                over = self._over()
                self._quit = True
            self._send(connection, struct.pack("!I", over))
        else:
            raise EOFError
        return False

    def _init(self, connection: socket.socket, message: str) -> bool:
        experiment, role, _, agents = _receive(connection).decode().split(":")
        assert experiment in message
        assert (role, agents) == ("0", "1")
        with self._state:
            started = self._over() and self.faults.busy == 0
            self.faults.busy = max(0, self.faults.busy - 1)
            if started:
                self.world, self._quit, self._steps = World(message.encode()), False, 0
                self.world.done = self.faults.dead_start
                self.missions += 1
        self._send(connection, struct.pack("!I", started), b"")
        return started

    def _over(self) -> bool:
        over = self.world is None or self.world.done
        if self._quit and self.world is not None:
            self.world.done = True
        return over

    def _peek(self, connection: socket.socket) -> None:
        with self._state:
            world = self.world
            assert world is not None
            self._over()
            late = self.faults.late_pictures > 0 or self.faults.dead_start
            self.faults.late_pictures = max(0, self.faults.late_pictures - 1)
            picture, done = b"" if late else self._picture(world), world.done
        self._send(connection, picture, struct.pack("!b", done))

    def _step(self, connection: socket.socket, message: str) -> None:
        commands, options = message[TAG : -(TAG + 2)], int(message[TAG - 2])
        turn_key = _receive(connection) if options < 2 else b""
        assert turn_key == b""
        with self._state:
            answer = self._stepped(commands)
        if answer is None:
            self.crash()
            raise EOFError
        information = [b"{}"] if options in (0, 2) else []
        self._send(connection, *answer, *information, *([b""] if options < 2 else []))

    def _stepped(self, commands: str) -> tuple[bytes, bytes] | None:
        """Returns picture and (reward, done, taken); None where the client crashes instead."""
        world = self.world
        assert world is not None
        self._over()
        self._steps += 1
        if self._steps == self.faults.crash_at_step:
            return None
        if world.done:
            picture = b"" if self.faults.blind_end else self._picture(world)
            reward, world.reward = world.reward, 0.0
            return picture, struct.pack("!dbb", reward, True, False)
        if self.faults.lost_pictures > 0:
            self.faults.lost_pictures -= 1
            return b"", struct.pack("!dbb", 0.0, False, False)
        picture, reward = self._picture(world), world.reward
        world.reward = 0.0
        world.obey(commands)
        world.tick()
        return picture, struct.pack("!dbb", reward, False, True)

    def _picture(self, world: World) -> bytes:
        return world.picture() + b"!" * self.faults.wrong_size

    def _send(self, connection: socket.socket, *messages: bytes) -> None:
        data = b"".join(struct.pack("!I", len(message)) + message for message in messages)
        if not self.faults.seconds_per_part:
            connection.sendall(data)
            return
        for start in range(0, len(data), 64):
            time.sleep(self.faults.seconds_per_part)
            connection.sendall(data[start : start + 64])


def _receive(connection: socket.socket) -> bytes:
    (length,) = struct.unpack("!I", _receive_bytes(connection, 4))
    return _receive_bytes(connection, length)


def _receive_bytes(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)  # malmoenv waits for it
        part = connection.recv(count - len(received))
        if not part:
            raise EOFError
        received += part
    return received


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
