"""The seed's two lines of progress, printed whenever a log interval is crossed."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime

from reporting.lines import interval_line, progress_line


class ProgressLines:
    """Prints at the first call at or after each multiple of `log_interval` steps."""

    def __init__(self, role: str, log_interval: int, t_max: int) -> None:
        self._role = role
        self._log_interval = log_interval
        self._t_max = t_max
        self._interval: int | None = None
        self._since = time.monotonic()

    def progress(self, t: int) -> bool:
        """Whether `t` (agent steps) lies in another interval than at the last call; then two lines were
        printed.
        """
        interval = t // self._log_interval
        if interval == self._interval:
            return False
        first, self._interval = self._interval is None, interval
        if first:
            return False
        now = time.monotonic()
        with suppress(OSError):  # a full disk under the log
            print(progress_line(datetime.now(), t, self._t_max), flush=True)
            print(interval_line(self._role, now - self._since), flush=True)
        self._since = now
        return True
