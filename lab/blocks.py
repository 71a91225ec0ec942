"""Blocks of a spec file that are no flags, checked: one sentence with the key and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from args import UserError, no_truth, problem

Number = Annotated[float, BeforeValidator(no_truth)]


class Block(BaseModel):
    """A mapping of a spec file; keys may have dashes."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=lambda name: name.replace("_", "-"),
    )


BlockT = TypeVar("BlockT", bound=Block)


def dashed(body: Mapping[str, Any], name: str, kind: type[Block], where: str) -> dict[str, Any]:
    """What `body` holds below `name`, keys with dashes; nothing where it has none. Raises UserError."""
    block = body.get(name, {})
    if not isinstance(block, dict):
        raise UserError(f"{where}: {name} must hold {allowed(kind)}.")
    return {key.replace("_", "-"): value for key, value in block.items()}


def checked(kind: type[BlockT], block: Mapping[str, Any], name: str, where: str) -> BlockT:
    """The block that the spec calls `name`. Raises UserError."""
    try:
        return kind(**block)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise UserError(f"{where}: {name} has no {key}; it may hold {allowed(kind)}.") from error
        if first["type"] == "missing" and len(first["loc"]) == 1:
            raise UserError(f"{where}: {name} needs {key}; it may hold {allowed(kind)}.") from error
        at = ".".join(filter(None, (name, key)))
        raise UserError(f"{where}: {at} {problem(first)}") from error


def allowed(kind: type[Block]) -> str:
    """The keys that it may hold."""
    return ", ".join(str(field.alias) for field in kind.model_fields.values())
