"""Reads the lab's own json files, which crashes and other hands may have damaged."""

from __future__ import annotations

from dataclasses import Field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from args import UserError


class Dataclass(Protocol):
    """Any of them."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


RecordT = TypeVar("RecordT", bound=Dataclass)


def read_whole(path: Path, kind: type[RecordT], cure: str) -> RecordT | None:
    """What the lab wrote to a file; None where there is none.

    Args:
      kind: a dataclass; the file must hold each of its fields, and nothing else.
      cure: what becomes of it when the file is removed.

    Raises UserError for a file that is damaged or holds something else.
    """
    if not path.exists():
        return None
    try:
        data = path.read_bytes()
        document = TypeAdapter(dict[str, Any]).validate_json(data)
        odd = sorted(document.keys() ^ {field.name for field in fields(kind)})
        if odd:
            what = "does not belong there" if odd[0] in document else "is missing"
            raise UserError(_damaged(path, f"{odd[0]} {what}", cure))
        return TypeAdapter(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(part) for part in first["loc"])
        raise UserError(_damaged(path, f"{at}{': ' if at else ''}{first['msg']}", cure)) from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def _damaged(path: Path, why: str, cure: str) -> str:
    return f"{path} is damaged: {why}; remove it, {cure}."
