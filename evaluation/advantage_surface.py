"""Advantages A(s, a) around an agent's greedy action, frame by frame.

python -m wiring.advantage_surface --model results/last_model_maze_1_100000.pth --every 20
python -m wiring.advantage_surface --model FILE --event-log random.events --frames 10,50,200
python -m wiring.advantage_surface --model FILE --images room.png corridor.png --dimensions 0,1
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from envs.config import EnvDescription
from evaluation.advantage_page import HEIGHT, Mark, Surface
from evaluation.scenes import Scene
from reporting.pages.page import BROWSERS, StillError, find_browser, write_still

POINTS = 41
"""Values that each drawn component takes between its bounds."""
STILL_WIDTH = 1400
"""Width of the picture in pixels (our choice)."""


@runtime_checkable
class AdvantageAgent(Protocol):
    """An agent of continuous actions that estimates the advantage of any of them."""

    def greedy(self, s_t: NDArray[Any]) -> NDArray[Any]:
        """s_t [N, H, *frame] -> [N, A]."""

    def advantages(self, s_t: NDArray[Any], actions: NDArray[Any]) -> NDArray[Any]:
        """s_t [N, H, *frame], actions [M, A] -> [N, M]."""


def surface_of(
    agent: AdvantageAgent, scene: Scene, components: Sequence[int], description: EnvDescription
) -> Surface:
    """Advantages along the components that are drawn; all others stay as in the greedy action."""
    bounds = (np.array(bound, np.float32) for bound in (description.action_low, description.action_high))
    low, high = (bound[components] for bound in bounds)
    values = list(np.linspace(low, high, POINTS, dtype=np.float32).T)
    greedy = agent.greedy(scene.s_t[None])[0]

    def advantages_at(points: NDArray[Any]) -> NDArray[Any]:
        """[M, D] -> [M]."""
        actions = np.tile(greedy, (len(points), 1))
        actions[:, components] = points
        return np.asarray(agent.advantages(scene.s_t[None], actions)[0])

    grid = np.stack(np.meshgrid(*values), axis=-1)  # [X, 1], or [Y, X, 2]
    advantages = advantages_at(grid.reshape(-1, len(values))).reshape(grid.shape[:-1])
    marked = {"chosen": greedy} if scene.taken is None else {"chosen": greedy, "taken": scene.taken}
    marks = [
        Mark(name, action[components], float(advantages_at(action[None, components])[0]))
        for name, action in marked.items()
    ]
    return Surface(scene.name, scene.picture, scene.s_t[-1].ravel(), values, advantages, marks)


def draw_still(page: Path, surfaces: int) -> str:
    """Take a picture of a page of surfaces where a browser is installed; returns a sentence about it."""
    browser, picture = find_browser(), page.with_suffix(".png")
    if browser is None:
        return f"No still picture was taken: none of {', '.join(BROWSERS)} is installed."
    rows = -(-surfaces // 2)  # two cards in a row
    try:
        write_still(browser, page, picture, STILL_WIDTH, height=100 + rows * (HEIGHT + 56))
    except StillError as error:
        return f"No still picture was taken: {error}"
    return f"Saved {picture}."
