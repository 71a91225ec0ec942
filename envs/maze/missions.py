"""The mazes that have a name, and what each of them asks of the agent."""

import re
from dataclasses import dataclass


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
