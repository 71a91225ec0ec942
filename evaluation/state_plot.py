"""A picture where there is no film: the numbers that an environment showed in one episode, as a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.config import EnvConfig, EnvError
from envs.playback import Action, Frames
from envs.registry import describe_env
from evaluation.result import Evaluation
from reporting.pages.graph import Axis, Graph, Line, write_png
from reporting.pages.page import COLOURS


class StatePlot:
    """Keeps what an evaluation's episodes showed, and draws one of them as a .png file.

    For every environment whose frames are numbers, also where it cannot be repeated or draw itself.

    Raises:
        EnvError: its frames are images.
    """

    def __init__(self, path: Path, env_config: EnvConfig) -> None:
        self._description = describe_env(env_config)
        if len(self._description.frame_shape) != 1:
            raise EnvError(
                f"{env_config.game} shows images: film it, by --record {path.with_suffix('.mp4')}."
            )
        self._path, self._game = path, env_config.game
        self._frames: dict[int, list[Frames]] = {}
        self._actions: dict[int, list[Action]] = {}

    def start(self, episode: int, seed: int) -> None:
        """An episode starts."""
        self._frames[episode], self._actions[episode] = [], []

    def step(self, episode: int, action: Action, frame: Frames) -> None:
        """Remember both."""
        self._frames[episode].append(frame)
        self._actions[episode].append(action)

    def write(self, evaluation: Evaluation) -> int:
        """Draw the episode with the median score and return its number."""
        episode = evaluation.median_episode
        frames, actions = np.stack(self._frames[episode]), np.asarray(self._actions[episode])
        title = f"{self._game}: episode {episode}, score {evaluation.scores[episode]:,.2f}"
        graphs = _lines("state", frames), _lines("action", actions.reshape(len(actions), -1))
        write_png(self._path, title, graphs)
        return episode


def _lines(name: str, numbers: NDArray[Any]) -> Graph:
    """A curve for each column of [T, K]."""
    steps = np.arange(len(numbers), dtype=np.float64)
    curves = [
        Line(str(column), steps, values.astype(np.float64), COLOURS[column % len(COLOURS)], width=1.0)
        for column, values in enumerate(numbers.T)
    ]
    return Graph(Axis("agent step"), name, curves, legend=len(curves) > 1)
