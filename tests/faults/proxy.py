"""A TCP proxy before a server, whose connections can be cut."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Listens on a free port of this machine and passes everything on, until it is told to cut."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._refuses = self._swallows_replies = False
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow_replies(self) -> None:
        """From here on requests arrive and their replies do not."""
        self._swallows_replies = True

    def cut(self) -> None:
        """End every connection and accept none until `mend`."""
        self._refuses = True
        for end in list(self._open):
            _close(end)
        self._open.clear()

    def mend(self) -> None:
        """Pass everything on again."""
        self._refuses = self._swallows_replies = False

    def close(self) -> None:
        """End."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    if self._refuses:
                        raise ConnectionRefusedError
                    server = socket.create_connection(("127.0.0.1", self._target_port))
                except OSError:
                    _close(client)
                    continue
                self._open |= {client, server}
                for source, sink, replies in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass_on, args=(source, sink, replies), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, replies: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if not (replies and self._swallows_replies):
                    sink.sendall(data)
        for end in (source, sink):
            _close(end)
            self._open.discard(end)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
