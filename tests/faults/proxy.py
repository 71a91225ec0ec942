"""A TCP proxy before a server, whose connections can be cut or slow."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

PIECE = 1 << 16
"""Bytes that are passed on at a time."""


class Proxy:
    """Listens on a free port of this machine and passes everything on, until it is told to cut."""

    def __init__(self, target_port: int, bytes_per_s: float = 0.0) -> None:
        """`bytes_per_s`: what each direction of each connection carries; 0: as much as there is."""
        self._target_port, self._bytes_per_s = target_port, bytes_per_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        if bytes_per_s:  # a slow line holds little itself
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._refuses = self._swallows_replies = self._swallows = False
        self._dead: set[socket.socket] = set()  # what they send goes nowhere, for good
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow_replies(self) -> None:
        """From here on requests arrive and their replies do not."""
        self._swallows_replies = True

    def swallow(self) -> None:
        """From here on nothing comes through; connections of this time stay open and silent after `mend`."""
        self._swallows = True
        self._dead |= self._open

    def cut(self) -> None:
        """End every connection and accept none until `mend`."""
        self._refuses = True
        for end in list(self._open):
            _close(end)
        self._open.clear()

    def mend(self) -> None:
        """Pass everything on again."""
        self._refuses = self._swallows_replies = self._swallows = False

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
                if self._swallows:
                    self._dead |= {client, server}
                for source, sink, replies in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass_on, args=(source, sink, replies), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, replies: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE):
                if self._bytes_per_s:
                    time.sleep(len(data) / self._bytes_per_s)
                if not (replies and self._swallows_replies) and source not in self._dead:
                    sink.sendall(data)
        for end in (source, sink):
            _close(end)
            self._open.discard(end)
            self._dead.discard(end)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
