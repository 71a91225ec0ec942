"""Declares parameters: a room's settings.py holds them as fields of a `Settings`, and args.py composes these.

`problem` says what is wrong with a value.

Imports pydantic alone, so that --help need not wait for anything.
"""

from __future__ import annotations

import enum
import math
import typing
from collections.abc import Sequence
from typing import Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import ErrorDetails


class UserError(ValueError):
    """A mistake of the user's: one sentence, exit code 2."""


class Programs(enum.Flag):
    """Which programs read a parameter: their --help shows it, the others accept it all the same."""

    LEARNER = enum.auto()
    ACTOR = enum.auto()
    EVALUATION = enum.auto()
    TERMINAL = enum.auto()  # start_learning.py, which hands all to learner and actors
    PAGE = enum.auto()  # live_page.py
    CLUSTER = enum.auto()  # launch_cluster.py, which hands all to learner and actors too
    LEARNING = LEARNER | TERMINAL
    RUN = LEARNER | ACTOR | TERMINAL
    ALL = RUN | EVALUATION


class Settings(BaseModel):
    """Some parameters of a room, checked; the first line of the docstring heads their group in --help."""

    programs: ClassVar[Programs] = Programs.RUN
    """Which read those parameters that name none themselves."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        allow_inf_nan=False,
        coerce_numbers_to_str=True,
        defer_build=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        number = plain_type(cls.model_fields[info.field_name or ""].annotation) in (int, float)
        return no_truth(value) if number else value

    @field_validator("*")
    @classmethod
    def _one_of_the_choices(cls, value: Any, info: ValidationInfo) -> Any:
        extra = cast(dict[str, Any], cls.model_fields[info.field_name or ""].json_schema_extra)
        if extra["choices"] and value not in extra["choices"]:
            raise ValueError(f"choose one of {', '.join(filter(None, extra['choices']))}")
        return value


def parameter(
    default: Any,
    sentence: str,
    *,
    shared: bool = False,
    programs: Programs | None = None,
    choices: Sequence[str] = (),
    **bounds: Any,
) -> Any:
    """A field that is a flag of the same name.

    Args:
        default: its value without the flag.
        sentence: what it means, with its unit and the source of its default; --help shows it.
        shared: the learner publishes it, and actors adopt it.
        programs: which read it; default: those of its group.
        choices: what its text may be.
        bounds: `ge`, `gt`, `le`, `lt` for a number, `pattern` for other text.
    """
    known = {"shared": shared, "programs": programs, "choices": choices}
    return Field(default, description=sentence, json_schema_extra=cast(Any, known), **bounds)


def flag_of(name: str) -> str:
    """`--learn-start` of the parameter learn_start."""
    return "--" + name.replace("_", "-")


def plain_type(annotation: object) -> type:
    """`int` of int and of `int | None`."""
    options = [option for option in typing.get_args(annotation) if option is not type(None)]
    return cast(type, options[0] if options else annotation)


def no_truth(value: Any) -> Any:
    """Refuse true and false where a number belongs: Python would take them for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("input should be a number")
    return value


def problem(details: ErrorDetails) -> str:
    """What a value is, what it should be, and how to write it where that is plain: the end of a sentence."""
    value, message = details["input"], details["msg"].removeprefix("Value error, ")
    limits = details.get("ctx", {})
    match details["type"]:
        case "int_type" | "int_parsing" if (number := _integer(value)) is not None:
            message = f"input should be a valid integer: write {number}"
        case "bool_parsing":
            message = "input should be True, False, 1 or 0"
        case "string_type" if isinstance(value, list):
            message = f"input should be text: write {','.join(map(str, value))}"
        case "tuple_type":
            message = "input should be a list" + (
                f", as [{value}]" if isinstance(value, str | int | float) else ""
            )
        case "missing":
            message = "it should hold one more"
        case "too_short":
            message = f"it should hold at least {limits['min_length']} of them"
        case "too_long":
            message = f"it should hold at most {limits['max_length']} of them"
    return f"got {value!r}: {message[0].lower()}{message[1:]}."


def _integer(value: object) -> int | None:
    """The one that `value` means, as '1e5' does, in which YAML sees no number; None where it means none."""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
