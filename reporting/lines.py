"""The two lines a process prints every log interval where no terminal shows the live view."""

from datetime import datetime


def progress_line(time: datetime, t: int, t_max: int) -> str:
    """`[2019-08-12T17:40:11] T = 12500 / 50000000`, in agent steps."""
    return f"[{time.isoformat(timespec='seconds')}] T = {t} / {t_max}"


def interval_line(role: str, seconds: float) -> str:
    """`Time between 2 log_interval for learner (14.410 sec)`; `role` is "learner" or "actor 0"."""
    return f"Time between 2 log_interval for {role} ({seconds:.3f} sec)"
