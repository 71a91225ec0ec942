"""What a run's terminal says of it besides the view: that it is slow, and at its end where everything is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from reporting.model_files import last_models
from supervision.run_watch import Story, time_left

ASKED_AFTER_S = 120.0
"""Seconds of learning after which its pace is known."""
LONG_S = 2 * 86_400.0
"""Seconds: a run with more time left than this gets the advice."""


class PaceAdvice:
    """One sentence for a run that takes days."""

    def __init__(self, lighter: str) -> None:
        """`lighter`: a sentence on what would take less."""
        self._lighter, self._told = lighter, False

    def __call__(self, story: Story) -> str:
        """The advice, once; "" at every other call."""
        left = story.seconds_left
        if self._told or left is None or story.paced_s < ASKED_AFTER_S:
            return ""
        self._told = True
        if left <= LONG_S:
            return ""
        return f"At the pace of its first minutes: {time_left(left)}. {self._lighter}"


def last_words(
    folder: Path, file_name: str, goes_on: Sequence[str], evaluation: Sequence[str] = ()
) -> list[str]:
    """Three lines: the page of results, the snapshot, the command that goes on; those that there are.

    Args:
        goes_on: the run's own command.
        evaluation: evaluates a finished run, shown instead; --model is added.
    """
    page, snapshots = folder / f"Reward_{file_name}.html", last_models(folder, file_name)
    lines = [f"Results    {page}"] if page.exists() else []
    if not snapshots:
        return lines
    evaluate = f"Evaluate   {shlex.join([*evaluation, '--model', str(snapshots[0])])}"
    go_on = f"Go on      {shlex.join(goes_on)}"
    return [*lines, f"Snapshot   {snapshots[0]}", evaluate if evaluation else go_on]
