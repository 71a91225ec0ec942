"""Lines of progress in the log of a learner or an actor."""

import time
from contextlib import suppress
from datetime import datetime


class ProgressLines:
    """Prints at the first call at or after each multiple of `log_interval` steps."""

    def __init__(self, role: str, log_interval: int, t_max: int) -> None:
        """`role`: "learner" or "actor 0"."""
        self._role, self._log_interval, self._t_max = role, log_interval, t_max
        self._interval: int | None = None
        self._since = time.monotonic()

    def progress(self, t: int) -> bool:
        """Whether `t` (agent steps) is in another interval than at the last call; two lines were printed."""
        interval = t // self._log_interval
        if interval == self._interval:
            return False
        first, self._interval = self._interval is None, interval
        if first:
            return False
        now = time.monotonic()
        with suppress(OSError):  # a full disk under the log
            print(f"[{datetime.now().isoformat(timespec='seconds')}] T = {t} / {self._t_max}", flush=True)
            seconds = now - self._since
            print(f"Time between 2 log_interval for {self._role} ({seconds:.3f} sec)", flush=True)
        self._since = now
        return True
