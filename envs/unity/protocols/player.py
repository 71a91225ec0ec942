"""A build of Unity in a process of its own, which speaks one of ML-Agents' two protocols.

The player is the client of both. Which one it speaks shows when it connects: to the port that --port names,
or to the one of --mlagents-port. It ignores the other argument.
"""

import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from envs.unity.protocols.api2 import FirstProtocol
from envs.unity.protocols.bodies import PlayerFailed, PlayerLimits
from envs.unity.protocols.calls import Calls
from envs.unity.protocols.mlagents import PresentProtocol

Conversation = FirstProtocol | PresentProtocol
"""A player's side of a protocol; both have the same methods."""


class UnityPlayer:
    """One running build.

    Args:
        program: The build's executable.
        seed: Of the scene's chance, where its protocol has one.

    Raises:
        OSError: It does not start, connect or speak as it should; as PlayerFailed.
    """

    def __init__(self, program: Path, limits: PlayerLimits, seed: int = 0) -> None:
        self._limits = limits
        calls = Calls(limits)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            ports = ["--port", str(listener.getsockname()[1]), "--mlagents-port", str(calls.port)]
            try:
                self._process = _started(program, ports)
            except BaseException:
                calls.close()
                raise
            try:
                self.conversation = self._begun(listener, calls, seed)
            except BaseException:  # Ctrl-C too
                calls.close()
                self._kill()
                raise

    def close(self) -> None:
        """Ends the player."""
        self.conversation.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(self._limits.end)
        self._kill()

    def _begun(self, listener: socket.socket, calls: Calls, seed: int) -> Conversation:
        """Waits until the player connects, and hears what it has."""
        deadline = time.monotonic() + self._limits.start
        listener.settimeout(0.1)
        while time.monotonic() < deadline:
            if calls.has_begun():
                return PresentProtocol(calls, self._is_running, seed)
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                calls.close()
                return FirstProtocol(connection, self._limits)
            if not self._is_running():
                raise PlayerFailed(f"ended with {self._process.returncode} before it had connected")
        raise PlayerFailed(f"did not connect within {self._limits.start:g} seconds")

    def _is_running(self) -> bool:
        return self._process.poll() is None

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _started(program: Path, ports: list[str]) -> subprocess.Popen[bytes]:
    """Killed with the thread that starts it: an orphan would play on for ever."""
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", program, "-batchmode", "-nographics", *ports],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=program.parent,
    )
