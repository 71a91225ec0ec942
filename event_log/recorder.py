"""Keeps what an actor plays in an event log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from acting.player import VectorStep
from envs import EnvDescription
from event_log.records import LogHeader
from event_log.writer import EventLogWriter


def log_header(game: str, description: EnvDescription) -> LogHeader:
    """What a log of `game` (its canonical name) begins with."""
    return LogHeader(
        game=game,
        frame_shape=description.frame_shape,
        frame_dtype=description.frame_dtype,
        num_actions=description.num_actions,
        action_low=description.action_low,
        action_high=description.action_high,
        frames_per_step=description.frames_per_step,
    )


class EventRecorder:
    """Writes the vector steps of one actor into an event log, each environment's episodes apart."""

    def __init__(self, path: Path, header: LogHeader) -> None:
        """Raises EventLogError when `path` cannot be appended to."""
        self._writer = EventLogWriter(path, header)

    def add(self, step: VectorStep) -> None:
        """Take in a vector step; rows that only restarted hold the last frame of the episode before."""
        for row, frame in enumerate(step.frames):
            if step.active[row]:
                ended = bool(step.terminated[row]), bool(step.truncated[row])
                self._writer.add(row, frame, step.a_t[row], float(step.rewards[row]), *ended)
            else:
                self._writer.end(row, frame)

    def close(self, frames: NDArray[Any]) -> None:
        """The actor stops before `frames` [N, *frame]: episodes that are under way are broken off there."""
        for row, frame in enumerate(frames):
            self._writer.end(row, frame)
        self._writer.close()
