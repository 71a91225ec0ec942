"""What the lab reads, checked: its own files, which a crash or a hand may have damaged, and a spec's blocks.

Each mistake is one sentence with the file or key and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from args import UserError
from parameters.declare import no_truth, problem

DEFAULT = Path("results/lab")
LOCK, PROCESS, LOG = "lab.lock", "lab.json", "lab.log"
"""Files that the lab keeps beside the experiments: who holds the folder, and a detached lab's output."""
RUNS = "runs"
"""Name of the lab's folder, which lies in the folder of the benchmark's table."""
CSV, SESSIONS = "benchmark.csv", "sessions.csv"
TABLES = (CSV, SESSIONS, "recipes.csv", "benchmark.json", "benchmark.html", "README.md")
"""Files of the benchmark's table; beside them is a png for each game."""
ENJOYED = "enjoy"
"""Name of the folder with what mode enjoy played of a session: it is no score."""
RESERVED = (LOCK, PROCESS, LOG, RUNS, *TABLES)


def name_fault(name: str) -> str:
    """What is wrong with an experiment's name, which names its folder too; "" where nothing is."""
    if name in RESERVED:
        return f"{name} is reserved for the lab's own files; choose another name."
    if not re.fullmatch(r"\w[\w.-]*", name):
        return "it names a folder: use letters, digits, '_', '.' and '-', and do not begin with '.' or '-'."
    return ""


def command_for(name: str, root: Path) -> str:
    """What a user types to act on the lab in that folder."""
    return f"python run_lab.py {name}" if root == DEFAULT else f"python run_lab.py {name} --results {root}"


def of_another_spec(folder: Path, what: str, experiment: str, root: Path) -> UserError:
    """The error where a folder of the lab at `root` holds a `what`, as "search", of another spec."""
    command = command_for(f"reset {experiment}", root)
    return UserError(f"{folder} holds a {what} of another spec: move it away, or remove it with `{command}`.")


RecordT = TypeVar("RecordT")
ModelT = TypeVar("ModelT", bound=BaseModel)


def dash(name: str) -> str:
    """A flag as users write it."""
    return name.replace("_", "-")


def spec_bytes(title: str, document: Mapping[str, Any]) -> bytes:
    """A spec file: a comment, and the flags as users write them."""
    words = {dash(name): value for name, value in document.items()}
    return f"# {title}\n{yaml.safe_dump(words, sort_keys=False)}".encode()


def read_whole(path: Path, kind: type[RecordT], cure: str) -> RecordT | None:
    """What the lab wrote to a file; None where there is none.

    Args:
        kind: a dataclass; the file must hold each of its fields, and nothing else.
        cure: how the sentence "remove it, ..." ends.

    Raises UserError for a file that is damaged or holds something else.
    """
    if not path.exists():
        return None
    try:
        data = path.read_bytes()
        document = TypeAdapter(dict[str, Any]).validate_json(data)
        if odd := sorted(document.keys() ^ kind.__annotations__.keys()):
            what = "does not belong there" if odd[0] in document else "is missing"
            raise UserError(_damaged(path, f"{odd[0]} {what}", cure))
        return TypeAdapter(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(part) for part in first["loc"])
        raise UserError(_damaged(path, f"{at}{': ' if at else ''}{first['msg']}", cure)) from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def read_model(path: Path, kind: type[ModelT], what: str) -> ModelT:
    """What another program wrote to a file: `what`, such as "evaluation". Raises UserError."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path} is no {what} ({where}: {first['msg']}): move it away.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def _damaged(path: Path, why: str, cure: str) -> str:
    return f"{path} is damaged: {why}; remove it, {cure}."


Number = Annotated[float, BeforeValidator(no_truth)]


class Block(BaseModel):
    """A mapping of a spec file; keys may have dashes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, alias_generator=dash)


BlockT = TypeVar("BlockT", bound=Block)


def dashed(body: Mapping[str, Any], name: str, kind: type[Block], where: str) -> dict[str, Any]:
    """What `body` holds below `name`, keys with dashes; nothing where it has none. Raises UserError."""
    block = body.get(name, {})
    if not isinstance(block, dict):
        raise UserError(f"{where}: {name} must hold {allowed(kind)}.")
    return {dash(key): value for key, value in block.items()}


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
