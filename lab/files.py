"""The lab's own files: their names, and reading those that a crash or a hand may have damaged."""

from __future__ import annotations

import re
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from args import UserError

LOCK, PROCESS, LOG = "lab.lock", "lab.json", "lab.log"
"""Files that the lab keeps beside the experiments: who holds the folder, and a detached lab's output."""
RUNS = "runs"
"""Folder of the lab below the benchmark's table."""
CSV, SESSIONS = "benchmark.csv", "sessions.csv"
TABLES = (CSV, SESSIONS, "benchmark.json", "benchmark.html", "README.md")
"""Files of the benchmark's table; beside them is a png for each game."""
RESERVED = (LOCK, PROCESS, LOG, RUNS, *TABLES)
FORM = "begin with a letter, a digit or '_', and go on with these, '.' and '-'"


def why_not(name: str) -> str:
    """What is wrong with the name of an experiment, whose folder is called so; "" where nothing is."""
    if name in RESERVED:
        return f"a file or folder of the lab's own is called {name}; choose another name."
    if not re.fullmatch(r"\w[\w.-]*", name):
        return f"a folder will be called so: {FORM}."
    return ""


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
