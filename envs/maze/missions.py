"""What each maze asks of the agent: its name, its size, its doors, and where agent and object stand."""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Mission:
    """A grid of square rooms, and how far from the agent the object stands."""

    rows: int
    columns: int
    side: float  # of a room, metres
    doors: int | None  # between the agent's room and the object's; None: any number above 0
    time_limit: int  # moves; --action-repeat of them are an agent step

    @property
    def rooms(self) -> int:
        """Number of rooms."""
        return self.rows * self.columns


MISSIONS = {
    "maze:1": Mission(1, 1, side=8.0, doors=0, time_limit=60),
    "maze:2": Mission(2, 2, side=6.0, doors=1, time_limit=150),
    "maze:3": Mission(2, 2, side=6.0, doors=3, time_limit=300),
}
ALIASES = {"maze": "maze:1", "maze:large": "maze:4x4"}

Doors = list[tuple[int, int]]  # pairs of rooms, which are counted from 0, row by row

_GRID = re.compile(r"maze:([1-9]\d?)x([1-9]\d?)")
_MOVES_PER_ROOM = 40  # a room of 6 m is crossed in 24


def canonical_name(game: str) -> str | None:
    """Returns a maze's one name, "maze:1" or "maze:<rows>x<columns>"; None for other games."""
    name = ALIASES.get(game, game)
    return name if name in MISSIONS or _grid(name) else None


def mission(game: str) -> Mission:
    """Returns what the maze with this canonical name asks."""
    rows, columns = _grid(game) or (0, 0)
    return MISSIONS.get(game) or Mission(rows, columns, 6.0, None, _MOVES_PER_ROOM * rows * columns)


def _grid(name: str) -> tuple[int, int] | None:
    """Rows and columns of "maze:3x4"; None for another name or a single room."""
    match = _GRID.fullmatch(name)
    rows, columns = map(int, match.groups()) if match else (1, 1)
    return (rows, columns) if rows * columns > 1 else None


class Layout(NamedTuple):
    """One maze of a mission."""

    doors: Doors
    start: int  # the agent's room
    goal: int  # the object's room


def draw_layout(mission: Mission, generator: np.random.Generator) -> Layout:
    """Draws doors such that one way joins any two rooms, and then two rooms as far apart as asked."""
    doors = _draw_doors(mission, generator)
    while True:
        start = int(generator.integers(mission.rooms))
        distances = _distances(doors, start)
        wanted = range(1, mission.rooms) if mission.doors is None else [mission.doors]
        goals = [room for room in range(mission.rooms) if distances[room] in wanted]
        if goals:
            return Layout(doors, start, goals[generator.integers(len(goals))])


def _draw_doors(mission: Mission, generator: np.random.Generator) -> Doors:
    """Depth-first search: on to a random neighbour that was not seen yet; where all were, back."""
    doors: Doors = []
    way = [int(generator.integers(mission.rooms))]
    seen = set(way)
    while way:
        unseen = [room for room in _neighbours(mission, way[-1]) if room not in seen]
        if not unseen:
            way.pop()
            continue
        room = unseen[generator.integers(len(unseen))]
        doors.append((way[-1], room))
        way.append(room)
        seen.add(room)
    return doors


def _neighbours(mission: Mission, room: int) -> list[int]:
    row, column = divmod(room, mission.columns)
    places = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    inside = [
        place for place in places if place[0] in range(mission.rows) and place[1] in range(mission.columns)
    ]
    return [row * mission.columns + column for row, column in inside]


def _distances(doors: Doors, start: int) -> dict[int, int]:
    """Number of doors on the one way from `start` to each room."""
    distances = {start: 0}
    while len(distances) <= len(doors):
        for one, other in (*doors, *((other, one) for one, other in doors)):
            if one in distances:
                distances.setdefault(other, distances[one] + 1)
    return distances
