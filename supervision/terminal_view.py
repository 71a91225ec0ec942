"""The live view of a run on a terminal, and the panel that stays when the run has ended."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from memory.runs.reports import Status, number
from supervision.run_watch import LEARNING, RunWatch, Story, phase, time_left
from supervision.score_chart import score_chart
from supervision.terminal_echo import without_control_keys

_UNKNOWN = "–"
_BUSY = ("acting", LEARNING, "warm-up")
_OTHER_LINES = 20
"""Lines of a panel with a chart, besides those of actors."""
_LABEL = 16
"""Width in columns of the labels of the chart."""


class TerminalView:
    """Drawn by `refresh`; `print` prints above it. Neither raises when Redis or the terminal is gone."""

    def __init__(
        self, title: str, watch: RunWatch, levels: Mapping[str, float], console: Console | None = None
    ) -> None:
        self._title, self._watch, self._levels = title, watch, levels
        self._console = console or Console()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._echo = without_control_keys(self._console.file)

    def __enter__(self) -> TerminalView:
        self._echo.__enter__()
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._live.update(Text(), refresh=True)  # else its last picture would stay above the last words
            self._live.stop()
        self._echo.__exit__(None, None, None)

    def print(self, sentence: str) -> None:
        """Print above the view."""
        with contextlib.suppress(OSError):
            self._console.print(Text(sentence))  # markup=False would hold for the view below it, too

    def refresh(self) -> None:
        """Draw anew what the watch has seen."""
        rows = max(self._console.height - _OTHER_LINES, 1)
        picture = live_view(self._title, self._watch.story, self._levels, rows)
        with contextlib.suppress(OSError):
            self._live.update(picture, refresh=True)

    def end(self, how: str, t: float) -> None:
        """Leave one panel in place of the view: `how` the run ended, at step `t`."""
        with contextlib.suppress(OSError):
            self._live.update(Text(), refresh=True)
            self._live.stop()
            self._console.print(last_view(self._title, self._watch.story, self._levels, how, t))


def live_view(
    title: str, story: Story, levels: Mapping[str, float], most_actors: int = 4096
) -> RenderableType:
    """One panel: what the run does and how far it is, its scores, and a row per process. Fits 80 columns."""
    named = [(f"actor {name}", status) for name, status in story.actors.items()]
    parts: list[RenderableType] = [Text(phase(story), style="bold green"), _progress(story), Text()]
    parts += [_learning(story.learner), Text(), *_scores(story, levels)]
    if warning := story.learner.get("warning"):
        parts += [Text(str(warning), style="yellow"), Text()]
    parts += [_processes([("learner", story.learner), *named[:most_actors]])]
    if more := named[most_actors:]:
        parts += [Text(f"and {len(more)} actors more", style="dim")]
    return _panel(title, parts, "[dim]Ctrl-C saves all and stops; the same command goes on[/]")


def last_view(title: str, story: Story, levels: Mapping[str, float], how: str, t: float) -> RenderableType:
    """The panel that stays."""
    end = f" of {story.t_max:,.0f}" if t < story.t_max else ""
    parts: list[RenderableType] = [Text(f"{how} at step {t:,.0f}{end}", style="bold"), Text()]
    scores = _scores(story, levels)
    return _panel(title, [*parts, _learning(story.learner), *([Text(), *scores[:-1]] if scores else [])])


def _panel(title: str, parts: Sequence[RenderableType], subtitle: str | None = None) -> RenderableType:
    return Panel(
        Group(*parts),
        title=f"[bold]{title}[/]",
        title_align="left",
        subtitle=subtitle,
        subtitle_align="right",
        border_style="blue",
        padding=(1, 2),
    )


def _progress(story: Story) -> RenderableType:
    t, t_max = story.t, story.t_max
    left = "" if story.seconds_left is None else time_left(story.seconds_left)
    grid = Table.grid(expand=True, padding=(0, 1))
    for ratio in (None, 1, None, None):
        grid.add_column(ratio=ratio, no_wrap=True)
    grid.add_row(
        f"T = {t:,.0f} / {t_max:,.0f}" if t_max else "T = –",
        ProgressBar(total=max(t_max, 1), completed=t, complete_style="blue"),
        f"{t / max(t_max, 1):.1%}",
        f"[dim]{left}[/]",
    )
    return grid


def _learning(learner: Status) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(
        *_replay(learner),
        "[dim]updates[/]",
        _shown(learner, "updates", ",.0f") + "  ",
        "[dim]loss[/]",
        _shown(learner, "loss", ".4g"),
    )
    return grid


def _replay(learner: Status) -> Sequence[RenderableType]:
    """Nothing of agents that learn from rollouts."""
    if learner.get("replay_fill") is None:
        return ()
    fill = number(learner, "replay_fill")
    bar = ProgressBar(total=1, completed=fill, width=14, complete_style="green", finished_style="green")
    return "[dim]replay[/]", bar, f"{fill:.0%}  "


class _Chart:
    """As wide as there is room."""

    def __init__(self, story: Story, levels: Mapping[str, float]) -> None:
        self._scores, self._levels = story.scores, levels

    def __rich_console__(self, console: Console, options: object) -> list[Text]:
        width = max(getattr(options, "max_width", 80) - _LABEL, 8)
        rows = score_chart(self._scores, self._levels, width)
        return [Text(f"{label:<{_LABEL}}", style="dim") + Text(row, style="cyan") for label, row in rows]


def _scores(story: Story, levels: Mapping[str, float]) -> list[RenderableType]:
    """Nothing before the first score; else it ends with an empty line."""
    if not story.scores:
        return []
    head = Text("mean score of the last 100 episodes  ", style="dim")
    return [head + Text(f"{story.scores[-1][1]:,.4g}", style="bold"), _Chart(story, levels), Text()]


def _processes(rows: Sequence[tuple[str, Status]]) -> RenderableType:
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


def _shown(status: Status, key: str, form: str, unit: str = "") -> str:
    return _UNKNOWN if status.get(key) is None else f"{number(status, key):{form}}{unit}"
