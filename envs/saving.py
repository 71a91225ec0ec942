"""The state of an object as far as it is plain: numbers, texts, arrays, random generators, lists of these."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from envs.config import EnvError

State = dict[str, Any]
_PLAIN = (bool, int, float, str, type(None), np.ndarray, np.generic, np.random.Generator)


def plain_state(thing: object) -> State:
    """Copies of the attributes that are plain; others are left out."""
    return {name: _copied(value) for name, value in vars(thing).items() if _is_plain(value)}


def restore_plain(thing: object, state: State) -> None:
    """Gives `thing` the attributes of `state`.

    Raises:
        EnvError: it has none of such a name, or a generator is of another kind.
    """
    for name, value in state.items():
        if name not in vars(thing):
            raise EnvError(f"A saved {type(thing).__name__} has {name}, this one has not.")
        setattr(thing, name, _restored(value))


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _copied(value: Any) -> Any:
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, np.ndarray):
        return value.copy()
    return type(value)(map(_copied, value)) if isinstance(value, list | tuple) else value


def _restored(value: Any) -> Any:
    if isinstance(value, Mapping):
        generator = np.random.default_rng()
        if value.get("bit_generator") != generator.bit_generator.state["bit_generator"]:
            raise EnvError("A saved random generator is of another kind than this program's.")
        generator.bit_generator.state = value
        return generator
    if isinstance(value, np.ndarray):
        return value.copy()
    return type(value)(map(_restored, value)) if isinstance(value, list | tuple) else value
