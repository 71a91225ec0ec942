"""A measured figure, and what it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.targets import TARGETS, Target
from benchmarks.timing import Spread


class Figure(NamedTuple):
    """One line of the report; `beside` are the absolute numbers behind it."""

    key: str
    value: Spread
    beside: Mapping[str, Spread | float]

    @property
    def target(self) -> Target:
        """What it should be; other figures only inform."""
        return TARGETS.get(self.key, Target(""))
