"""Which doors a maze has, and in which rooms the agent and the object stand."""

from collections import deque
from typing import NamedTuple

import numpy as np

from envs.maze.missions import Mission

Doors = list[tuple[int, int]]  # pairs of rooms, which are counted from 0, row by row


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
        goals = _goals(mission, _distances(mission.rooms, doors, start))
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


def _distances(rooms: int, doors: Doors, start: int) -> list[int]:
    """Number of doors on the way from `start` to each room."""
    beyond: list[list[int]] = [[] for _ in range(rooms)]
    for one, other in doors:
        beyond[one].append(other)
        beyond[other].append(one)
    distances = [-1] * rooms
    distances[start] = 0
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for room in beyond[here]:
            if distances[room] < 0:
                distances[room] = distances[here] + 1
                waiting.append(room)
    return distances


def _goals(mission: Mission, distances: list[int]) -> list[int]:
    if mission.doors is None:
        return [room for room, distance in enumerate(distances) if distance > 0]
    return [room for room, distance in enumerate(distances) if distance == mission.doors]
