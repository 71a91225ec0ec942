"""The server that a player of ML-Agents' present protocol calls, one call at a time."""

import queue
from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Thread
from typing import Any

import grpc

from envs.unity.protocols.bodies import PlayerFailed, PlayerLimits
from envs.unity.protocols.messages import SERVICE, Message

_LONGEST = 64 * 2**20  # bytes of a message; the pictures of a hundred bodies have less
_FINE, _END = 200, 400  # statuses
_LOOK = 0.5  # seconds between two looks at whether the player still runs


class _DaemonThreads(Executor):
    """A daemon thread per call, which the next step answers; the interpreter does not join it at exit."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Starts it."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the future's reader gets it
                future.set_exception(error)

        Thread(target=run, name="unity", daemon=True).start()
        return future


class Calls:
    """A gRPC server on a free port of this machine."""

    def __init__(self, limits: PlayerLimits) -> None:
        self._limits = limits
        self._said: queue.Queue[Any] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()
        self._server = grpc.server(_DaemonThreads(), options=[("grpc.max_receive_message_length", _LONGEST)])
        exchange = grpc.unary_unary_rpc_method_handler(
            self._handle, Message.FromString, Message.SerializeToString
        )
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(SERVICE, {"Exchange": exchange})]
        )
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def has_begun(self) -> bool:
        """Whether a player has called."""
        return not self._said.empty()

    def answer(self, message: Any) -> None:
        """Ends the call that waits."""
        message.header.status = _FINE
        self._answers.put(message)

    def next(self, is_running: Callable[[], bool]) -> Any:
        """The message of the next call. Raises PlayerFailed where there is none in time."""
        waited = 0.0
        while waited < self._limits.reply:
            try:
                message = self._said.get(timeout=_LOOK)
            except queue.Empty:
                waited += _LOOK
                if not is_running():
                    raise PlayerFailed("has ended") from None
                continue
            if message.header.status != _FINE:
                raise PlayerFailed("has closed its connection")
            return message
        raise PlayerFailed(f"has not answered for {self._limits.reply:g} seconds")

    def close(self) -> None:
        """Tells the player to end, and ends the server."""
        message = Message()
        message.header.status = _END
        self._answers.put(message)
        self._server.stop(self._limits.end)

    def _handle(self, message: Any, _: Any) -> Any:
        self._said.put(message)
        answer = self._answers.get()
        if answer.header.status == _END:
            self._answers.put(answer)  # for a call that the player begins while it is told to end
        return answer
