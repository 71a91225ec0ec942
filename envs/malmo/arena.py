"""Rooms of blocks in a row that winds: the agent starts in the first, a block of gold stands in the last.

Like Malmo's classroom missions: rooms of 7 x 7 blocks, joined by doorways. Coordinates are Minecraft's, in
blocks: x to the east, y up, z to the south.
"""

from typing import NamedTuple

import numpy as np

ROOMS = {1: 1, 2: 2, 3: 4}
"""Rooms of each mission: the gold is in the same room, one room away, three rooms away."""

FLOOR = 226  # y of the flat world's uppermost layer; the agent stands above it
GOAL = "gold_block"
_SIDE = 7  # inner side of a room
_PITCH = _SIDE + 1  # from a room to the next; the wall between them is shared
_HEIGHT = 4  # of walls; a room has no ceiling, so that daylight falls in
_GOAL_HEIGHT = 2  # as tall as the agent
_DOOR = 2  # width
_SAFE_DISTANCE = 3  # between the start and the gold of mission 1
_WALLS = ("sandstone", "cobblestone", "brick_block", "clay")  # drawn for each room
_GROUND = "stone"


class Cuboid(NamedTuple):
    """Blocks of one kind; both corners belong to it."""

    x1: int
    y1: int
    z1: int
    x2: int
    y2: int
    z2: int
    type: str


class Arena(NamedTuple):
    """What a mission's episode is played in."""

    cuboids: list[Cuboid]  # drawn in this order
    start: tuple[int, int]  # x, z of the agent's block
    yaw: int  # degrees; 0 looks south, 90 west
    goal: tuple[int, int]


def draw_arena(mission: int, seed: int) -> Arena:
    """Returns the arena of the mission's episode with this seed."""
    generator = np.random.default_rng(seed)
    rooms = _winding_row(ROOMS[mission], generator)
    start, goal = _place(rooms[0], generator), _place(rooms[-1], generator)
    while max(abs(start[0] - goal[0]), abs(start[1] - goal[1])) < _SAFE_DISTANCE:
        start, goal = _place(rooms[0], generator), _place(rooms[-1], generator)
    walls = [cuboid for room in rooms for cuboid in _room(room, str(generator.choice(_WALLS)))]
    doors = [_doorway(room, following, generator) for room, following in zip(rooms, rooms[1:], strict=False)]
    gold = _block(goal, goal, GOAL, _GOAL_HEIGHT)
    return Arena([*_empty_field(), *walls, *doors, gold], start, int(generator.integers(360)), goal)


def _winding_row(count: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    """Places rooms on a grid, each beside the one before and none on another.

    Up to four rooms never run into a dead end.
    """
    rooms = [(0, 0)]
    while len(rooms) < count:
        x, z = rooms[-1]
        beside = [(x + 1, z), (x - 1, z), (x, z + 1), (x, z - 1)]
        free = [room for room in beside if room not in rooms]
        rooms.append(free[generator.integers(len(free))])
    return rooms


def _place(room: tuple[int, int], generator: np.random.Generator) -> tuple[int, int]:
    """Draws a block of the room that touches no wall, so that nothing blocks a doorway."""
    dx, dz = generator.integers(1, _SIDE - 1, size=2)
    return room[0] * _PITCH + int(dx), room[1] * _PITCH + int(dz)


def _empty_field() -> list[Cuboid]:
    """Clears what an earlier mission may have drawn in this world, as far as rooms can reach."""
    farthest = max(ROOMS.values()) * _PITCH
    low, high = (-farthest, -farthest), (farthest, farthest)
    ground = Cuboid(low[0], FLOOR, low[1], high[0], FLOOR, high[1], _GROUND)
    return [_block(low, high, "air"), ground]


def _room(room: tuple[int, int], wall: str) -> list[Cuboid]:
    west, north = room[0] * _PITCH, room[1] * _PITCH
    east, south = west + _SIDE - 1, north + _SIDE - 1
    solid = _block((west - 1, north - 1), (east + 1, south + 1), wall)
    return [solid, _block((west, north), (east, south), "air")]


def _doorway(room: tuple[int, int], other: tuple[int, int], generator: np.random.Generator) -> Cuboid:
    wall_x, wall_z = (max(one, two) * _PITCH - 1 for one, two in zip(room, other, strict=True))
    shift = int(generator.integers(_SIDE - _DOOR + 1))
    if room[0] != other[0]:
        first = room[1] * _PITCH + shift
        return _block((wall_x, first), (wall_x, first + _DOOR - 1), "air")
    first = room[0] * _PITCH + shift
    return _block((first, wall_z), (first + _DOOR - 1, wall_z), "air")


def _block(low: tuple[int, int], high: tuple[int, int], kind: str, height: int = _HEIGHT) -> Cuboid:
    """Returns the cuboid of this kind that stands on the floor from corner (x, z) to corner."""
    return Cuboid(low[0], FLOOR + 1, low[1], high[0], FLOOR + height, high[1], kind)
