"""The live view of a run on a terminal, made of the statuses that its processes publish in Redis."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.live import Live

from memory.runs.keys import Keys
from memory.runs.status import read_all
from memory.server.connection import UNREACHABLE, RedisConfig, make_client, refusals_as_outages
from reporting.terminal import live_view

REFRESH_EVERY_S = 1.0
"""As often as processes publish."""
RETRY_AFTER_S = 5.0
"""A server that is away is not asked again for so long: a question to it can take seconds."""


class TerminalView:
    """Drawn by `refresh`; `print` prints above it. Neither raises when Redis or the terminal is gone."""

    def __init__(self, title: str, config: RedisConfig, keys: Keys, console: Console | None = None) -> None:
        self._title, self._keys = title, keys
        self._client = make_client(config)
        self._live = Live(console=console or Console(), auto_refresh=False)
        self._started = time.time()
        self._next = 0.0  # monotonic seconds

    def __enter__(self) -> TerminalView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._live.stop()
        self._client.close()

    def print(self, sentence: str) -> None:
        """Print above the view."""
        with contextlib.suppress(OSError):
            self._live.console.print(sentence, markup=False, highlight=False)

    def refresh(self) -> None:
        """Draw anew if that is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + REFRESH_EVERY_S
        try:
            with refusals_as_outages():
                statuses = self._statuses()
        except UNREACHABLE:
            self._next = time.monotonic() + RETRY_AFTER_S
            return
        actors = {role.removeprefix("actor:"): each for role, each in statuses.items() if role != "learner"}
        ordered = dict(sorted(actors.items(), key=lambda item: int(item[0])))
        with contextlib.suppress(OSError):
            self._live.update(live_view(self._title, statuses.get("learner", {}), ordered), refresh=True)

    def _statuses(self) -> dict[str, Mapping[str, float | str]]:
        """Statuses published since this view began, without unknown values."""
        return {
            role: {name: value for name, value in status.items() if value is not None}
            for role, status in read_all(self._client, self._keys).items()
            if float(status.get("time") or 0.0) >= self._started
        }
