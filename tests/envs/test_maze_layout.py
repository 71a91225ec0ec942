"""Which mazes there are, and how their rooms hang together."""

from __future__ import annotations

import numpy as np
import pytest

from envs.config import EnvError
from envs.maze.missions import draw_layout, mission
from envs.registry import canonical_game


def test_names() -> None:
    assert canonical_game("maze") == canonical_game("maze:1") == "maze:1"
    assert canonical_game("maze:large") == canonical_game("maze:4x4") == "maze:4x4"
    for name in ("maze:4", "maze:1x1", "maze:0x3", "maze:100x2", "maze:"):
        with pytest.raises(EnvError, match="No environment is called"):
            canonical_game(name)


@pytest.mark.parametrize("name", ["maze:1", "maze:2", "maze:3", "maze:4x4", "maze:2x5"])
def test_one_way_joins_any_two_rooms_and_the_cube_is_as_far_as_asked(name: str) -> None:
    asked = mission(name)
    layouts = [draw_layout(asked, np.random.default_rng(seed)) for seed in range(40)]
    for layout in layouts:
        neighbours: dict[int, set[int]] = {room: set() for room in range(asked.rooms)}
        for one, other in layout.doors:
            apart = abs(np.subtract(divmod(one, asked.columns), divmod(other, asked.columns)))
            assert apart.sum() == 1, "doors join rooms side by side"
            neighbours[one].add(other)
            neighbours[other].add(one)
        reached, doors = {layout.start}, 0
        while layout.goal not in reached:
            reached |= set().union(*(neighbours[room] for room in reached))
            doors += 1
        assert doors == asked.doors if asked.doors is not None else doors > 0
        while beyond := set().union(*(neighbours[room] for room in reached)) - reached:
            reached |= beyond
        assert len(reached) == asked.rooms
        assert len(layout.doors) == asked.rooms - 1
    assert asked.rooms == 1 or len({(*sorted(layout.doors), layout.start) for layout in layouts}) > 10
