"""The state of an object: the attributes that it names, or all that are plain (numbers, texts, arrays, random
generators, lists of these).
"""

from collections.abc import Mapping
from copy import copy, deepcopy
from typing import Any, ClassVar

import numpy as np

from envs.config import EnvError

State = dict[str, Any]
_PLAIN = (bool, int, float, str, type(None), np.ndarray, np.generic, np.random.Generator)


class Saved:
    """Saves what `SAVED` names: plain values, tensors, generators, and parts with a state of their own."""

    SAVED: ClassVar[tuple[str, ...]]
    """Names of the attributes that are saved. In the state they stand without their leading underscore."""

    def state_dict(self) -> State | None:
        """All that later steps depend on; None where a part of it cannot be saved."""
        state = {name: _state_of(getattr(self, name)) for name in self.SAVED}
        if any(saved is None and getattr(self, name) is not None for name, saved in state.items()):
            return None
        return {name.lstrip("_"): saved for name, saved in state.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()` of an object of the same kind and size. Raises EnvError."""
        for name in self.SAVED:
            setattr(self, name, _continued(getattr(self, name), state[name.lstrip("_")]))


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


def _state_of(part: Any) -> Any:
    if hasattr(part, "state_dict"):
        return part.state_dict()
    if hasattr(part, "get_state"):  # a generator of PyTorch
        return part.get_state()
    return list(map(_state_of, part)) if isinstance(part, list) else _copied(part)


def _continued(part: Any, state: Any) -> Any:
    """`part` with that state, or what takes its place."""
    if part is None or isinstance(part, np.random.Generator):
        return None if part is None else _restored(state)
    if isinstance(part, list):
        return [_continued(own, saved) for own, saved in zip(part, state, strict=True)]
    if isinstance(part, np.ndarray) and part.shape != np.shape(state):
        raise EnvError(f"A saved array has the shape {np.shape(state)}, and {part.shape} is due.")
    load = getattr(part, "load_state_dict", None) or getattr(part, "set_state", None)
    if load is None:
        return deepcopy(state)
    load(state)
    return part


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _copied(value: Any) -> Any:
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    return type(value)(map(_copied, value)) if isinstance(value, list | tuple) else deepcopy(value)


def _restored(value: Any) -> Any:
    if isinstance(value, Mapping):
        generator = np.random.default_rng()
        if value.get("bit_generator") != generator.bit_generator.state["bit_generator"]:
            raise EnvError("A saved random generator is of another kind than this program's.")
        generator.bit_generator.state = value
        return generator
    return type(value)(map(_restored, value)) if isinstance(value, list | tuple) else copy(value)
