"""Which of VizDoom's scenarios can be played by turning and walking, and in which sizes it draws."""

from collections.abc import Iterable

PREFIX = "vizdoom:"
SCENARIOS = ("my_way_home", "health_gathering", "health_gathering_supreme")
"""Of those that come with VizDoom 1.3.2; the others need weapons or steps to the side."""


def canonical_name(game: str) -> str | None:
    """Returns "vizdoom:my_way_home" for itself; None for a game of another family."""
    return game if game in known_names() else None


def known_names() -> tuple[str, ...]:
    """Returns all names of this family."""
    return tuple(PREFIX + scenario for scenario in SCENARIOS)


def smallest_resolution(names: Iterable[str], width: int, height: int) -> str | None:
    """Returns the smallest of VizDoom's resolutions that holds width x height pixels; None if none does.

    >>> smallest_resolution(["RES_320X240", "RES_160X120"], 84, 84)
    'RES_160X120'
    """
    sizes = {name: tuple(map(int, name.removeprefix("RES_").split("X"))) for name in names}
    large_enough = [name for name, (w, h) in sizes.items() if w >= width and h >= height]
    return min(large_enough, key=lambda name: sizes[name], default=None)
