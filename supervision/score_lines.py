"""A run's scores in lines, for where no live view can be drawn: pipes, files and services."""

from __future__ import annotations

import time
from collections.abc import Mapping

from supervision.run_watch import Story, time_left
from supervision.score_chart import short

PARTS = 10
"""Number of equal parts of a run, after each of which there is a line."""
AT_LATEST_S = 600.0
"""Longest time between two lines, in seconds."""
SCORE = " steps: mean score "
"""Part of every such line, by which it is known among others."""


class ScoreLines:
    """One line for each tenth of a run that is over, and every ten minutes."""

    def __init__(self, levels: Mapping[str, float]) -> None:
        """`levels`: scores to compare with, by name."""
        self._levels, self._part = levels, 0
        self._next = time.monotonic() + AT_LATEST_S

    def __call__(self, story: Story) -> str:
        """The line, "" where none is due."""
        if not story.scores or not story.t_max:
            return ""
        part, now = int(story.t / story.t_max * PARTS), time.monotonic()
        if part <= self._part and now < self._next:
            return ""
        self._part, self._next = part, now + AT_LATEST_S
        return self.line(story)

    def line(self, story: Story) -> str:
        """`4,000 / 40,000 steps: mean score 38.2 (random 22, goal 475), 2 min 3 s left`."""
        levels = ", ".join(f"{name} {short(level)}" for name, level in self._levels.items())
        left = "" if story.seconds_left is None else f", {time_left(story.seconds_left)}"
        beside = f" ({levels})" if levels else ""
        score = short(story.scores[-1][1])
        return f"{story.t:,.0f} / {story.t_max:,.0f}{SCORE}{score}{beside}{left}"
