"""Declares parameters: a room's settings.py holds them as fields of dataclasses, which args.py composes.

Imports the standard library alone, so that --help need not wait for anything.
"""

from __future__ import annotations

import dataclasses
from typing import Any


def parameter(default: Any, sentence: str, *, shared: bool = False, **bounds: float | str) -> Any:
    """A field that is a flag of the same name.

    Args:
      default: its value without the flag.
      sentence: what it means, with its unit and the source of its default; --help shows it.
      shared: the learner publishes it, and actors adopt it.
      bounds: `ge`, `gt`, `le`, `lt` for a number, `pattern` for text.
    """
    return dataclasses.field(
        default=default, metadata={"sentence": sentence, "shared": shared, "bounds": bounds}
    )
