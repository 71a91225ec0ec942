"""Flags of a user's own agent: the fields of its config dataclass that are no parameters yet."""

from __future__ import annotations

import copy
import dataclasses
import typing
from collections.abc import Container, Mapping
from typing import Any

from pydantic.fields import FieldInfo

from own_code.code import error_text, import_code, names_code
from parameters.declare import UserError, parameter, plain_type

PLAIN = (bool, int, float, str)
"""Types that a flag can have."""


def own_flags(
    agent: str, known: Mapping[str, FieldInfo], reserved: Container[str] = ()
) -> dict[str, tuple[Any, FieldInfo]]:
    """Name -> type and field, for an agent that is the user's own; importing it runs its file.

    A field of a parameter that is there already gives it another default, if it has one. A sentence for
    --help stands in the field's metadata: `field(default=32, metadata={"help": "quantiles"})`.

    Args:
        reserved: names that no new flag may have.

    Raises:
        UserError: it has no config, or a field is no flag.
    """
    if not names_code(agent):
        return {}
    config = getattr(import_code(agent).thing, "config_type", None)
    if not dataclasses.is_dataclass(config):
        raise UserError(f"{agent} needs a config_type: the dataclass of its parameters.")
    types = _types(agent, config)
    fields = ((field, types[field.name]) for field in dataclasses.fields(config))
    made = {field.name: _flag(agent, field, kind, known) for field, kind in fields}
    new = {name: flag for name, flag in made.items() if flag is not None}
    for name in new.keys() - known.keys():
        if name in reserved:
            raise UserError(f"The field {name} of {agent}'s config needs another name: this one is taken.")
    return new


def _types(agent: str, config: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(config)
    except Exception as error:  # of code that is not ours: a type that only a type checker imports
        raise UserError(f"A type in {agent}'s config cannot be looked up: {error_text(error)}.") from error


def _flag(
    agent: str, field: dataclasses.Field[Any], kind: Any, known: Mapping[str, FieldInfo]
) -> tuple[Any, FieldInfo] | None:
    """None for a parameter that is taken as it is; its name there may have capitals."""
    there = known.get(field.name)
    has_default = field.default is not dataclasses.MISSING
    if there is not None:
        return (there.annotation, _with_default(there, field.default)) if has_default else None
    if field.name in {name.lower() for name in known}:
        return None
    if not has_default or plain_type(kind) not in PLAIN:
        wanted = "a default" if not has_default else "bool, int, float or str for a type"
        raise UserError(f"The field {field.name} of {agent}'s config needs {wanted}, to be a flag.")
    sentence = field.metadata.get("help", f"{agent.rpartition(':')[2]}: {field.name}")
    return kind, parameter(field.default, sentence, shared=True)


def _with_default(field: FieldInfo, default: object) -> FieldInfo:
    other = copy.copy(field)
    other.default = default
    return other
