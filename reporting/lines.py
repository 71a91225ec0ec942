"""The two lines a process prints every log interval where no terminal shows the live view."""

import time
from contextlib import suppress
from datetime import datetime


def progress_line(time: datetime, t: int, t_max: int) -> str:
    """`[2019-08-12T17:40:11] T = 12500 / 50000000`, in agent steps."""
    return f"[{time.isoformat(timespec='seconds')}] T = {t} / {t_max}"


def interval_line(role: str, seconds: float) -> str:
    """`Time between 2 log_interval for learner (14.410 sec)`; `role` is "learner" or "actor 0"."""
    return f"Time between 2 log_interval for {role} ({seconds:.3f} sec)"


class ProgressLines:
    """Prints at the first call at or after each multiple of `log_interval` steps."""

    def __init__(self, role: str, log_interval: int, t_max: int) -> None:
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
            print(progress_line(datetime.now(), t, self._t_max), flush=True)
            print(interval_line(self._role, now - self._since), flush=True)
        self._since = now
        return True
