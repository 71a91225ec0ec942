"""What a terminal shows of a run: the live view, or two lines every log interval."""

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text


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


Status = Mapping[str, float | int | str | None]

_UNKNOWN = "–"
_BUSY = ("acting", "learning", "warm-up")


def live_view(title: str, learner: Status, actors: Mapping[str, Status]) -> RenderableType:
    """One panel: how far the run is, the state of learning, and a row per process. Fits 80 columns.

    Args:
      title: what is trained, e.g. "space_invaders · iqn".
      learner: its status; empty while it has published none. Keys, all optional or None: t, t_max (steps),
        steps_per_second, replay_fill (0 to 1), updates, loss, last_score, mean_score, weights_age (seconds),
        state.
      actors: status by name of actor ("0"), with the same keys; t counts the agent steps of all actors.
    """
    rows = [("learner", learner), *((f"actor {name}", status) for name, status in actors.items())]
    body = Group(_progress(learner, actors), Text(), _learning(learner), Text(), _processes(rows))
    return Panel(
        body,
        title=f"[bold]{title}[/]",
        title_align="left",
        subtitle="[dim]Ctrl-C saves a snapshot and stops all[/]",
        subtitle_align="right",
        border_style="blue",
        padding=(1, 2),
    )


def time_left(t: float, t_max: float, steps_per_second: float) -> str:
    """`3 h 12 min left` until t_max at the present rate; nothing where nothing moves."""
    if steps_per_second <= 0:
        return ""
    minutes, seconds = divmod(round(max(t_max - t, 0) / steps_per_second), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h left"
    return f"{hours} h {minutes} min left" if hours else f"{minutes} min {seconds} s left"


def _progress(learner: Status, actors: Mapping[str, Status]) -> RenderableType:
    statuses = [*actors.values(), learner]
    t = max((_number(status, "t") for status in actors.values()), default=_number(learner, "t"))
    t_max = max(_number(status, "t_max") for status in statuses)
    played = sum(_number(status, "steps_per_second") for status in actors.values())
    rate = _number(learner, "steps_per_second") or played  # actors play in bursts where they wait for it
    grid = Table.grid(expand=True, padding=(0, 1))
    for ratio in (None, 1, None, None):
        grid.add_column(ratio=ratio, no_wrap=True)
    grid.add_row(
        Text(f"T = {t:,.0f} / {t_max:,.0f}" if t_max else "T = –", style="bold"),
        ProgressBar(total=max(t_max, 1), completed=t, complete_style="blue"),
        f"{t / max(t_max, 1):.1%}",
        f"[dim]{time_left(t, t_max, rate)}[/]",
    )
    return grid


def _learning(learner: Status) -> RenderableType:
    fill = _number(learner, "replay_fill")
    grid = Table.grid(padding=(0, 1))
    grid.add_row(
        "[dim]replay[/]",
        ProgressBar(total=1, completed=fill, width=14, complete_style="green", finished_style="green"),
        f"{fill:.0%}  ",
        "[dim]updates[/]",
        _shown(learner, "updates", ",.0f") + "  ",
        "[dim]loss[/]",
        _shown(learner, "loss", ".4g"),
    )
    return grid


def _processes(rows: list[tuple[str, Status]]) -> RenderableType:
    table = Table(box=None, expand=True, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column("process", no_wrap=True)
    table.add_column("state", ratio=1, overflow="fold")
    for name in ("T", "steps/s", "last", "mean", "weights' age"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, status in rows:
        table.add_row(
            name,
            _state(status),
            _shown(status, "t", ",.0f"),
            _shown(status, "steps_per_second", ",.0f"),
            _shown(status, "last_score", ",.0f"),
            _shown(status, "mean_score", ",.1f"),
            _shown(status, "weights_age", ".0f", unit=" s"),
        )
    return table


def _state(status: Status) -> Text:
    state = str(status.get("state", "starting"))
    return Text(state, style="green" if state in _BUSY else "yellow")


def _number(status: Status, key: str) -> float:
    value = status.get(key, 0.0)
    return value if isinstance(value, (int, float)) else 0.0


def _shown(status: Status, key: str, form: str, unit: str = "") -> str:
    return _UNKNOWN if status.get(key) is None else f"{_number(status, key):{form}}{unit}"
