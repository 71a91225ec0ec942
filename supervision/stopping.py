"""SIGINT and SIGTERM become a flag that loops look at, so that every process ends at a point where nothing is
half done.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Stop:
    """Set once by a signal (after `on_signals`) or by `request`."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def on_signals(self) -> Stop:
        """Make SIGINT and SIGTERM set this flag; for the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)
        return self

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.request()

    def request(self) -> None:
        """Ask for the end."""
        self._event.set()

    def __call__(self) -> bool:
        """Whether the end was asked for."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep that ends early when the end is asked for; returns whether it was."""
        return self._event.wait(seconds)
