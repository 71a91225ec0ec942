"""Reads a YAML file of parameters: their names, and values that args.py checks. No other input or output.

Names that stand twice are refused: YAML would take the last.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from parameters.declare import UserError

BLOCKS = ("meta", "search")
"""Keys of a spec that are no flags: how run_lab.py repeats the run, and what it varies in a search."""
ELSEWHERE = {
    "learning_rate": "lr",
    "gamma": "discount",
    "buffer_size": "memory_capacity",
    "replay_size": "memory_capacity",
    "env": "game",
    "n_steps": "multi_step",
}
"""What other libraries call some parameters -> their names here."""
MERGE = "tag:yaml.org,2002:merge"
TEXT = "tag:yaml.org,2002:str"


class SpecFlags(NamedTuple):
    """What a file says about parameters."""

    flags: dict[str, Any]  # by the names of parameters
    written: dict[str, str]  # what a sentence calls each


def read_spec(path: Path, known: Collection[str]) -> SpecFlags:
    """Parameters in a YAML file: one mapping of flag names (dashes or underscores) to values.

    Beside them `BLOCKS` may stand, which are for run_lab.py; here they are left out.
    """
    document = read_mapping(path)
    if "experiments" in document:
        raise UserError(
            f"The spec {path} holds several experiments: run one with"
            f" `python run_lab.py run {path} NAME train`."
        )
    if "spec" in document:
        raise UserError(
            f"The spec {path} names another file of flags (spec), which only experiments of run_lab.py may."
        )
    own = {key: document[key] for key in document if key not in BLOCKS}
    flags, written = spec_flags(own, f"The spec {path}", known)
    return SpecFlags(flags, {name: f"{key} in {path}" for name, key in written.items()})


def read_mapping(path: Path) -> dict[str, Any]:
    """The one mapping that a YAML file holds; keys that begin with a dot, homes of anchors, are left out.

    Raises UserError.
    """
    document = read_document(path)
    if not isinstance(document, dict):
        raise UserError(f"The spec {path} must hold `name: value` lines.")
    return {name: value for name, value in document.items() if not name.startswith(".")}


def spec_flags(document: Mapping[str, Any], where: str, known: Collection[str]) -> SpecFlags:
    """The values of a mapping by the names of parameters; `known`: all there are.

    Raises UserError, which begins with `where`, for an unknown one.
    """
    written = {key.replace("-", "_"): key for key in document}
    unknown = [key for name, key in written.items() if name not in known]
    if unknown:
        raise UserError(f"{where} names an unknown parameter {unknown[0]}{nearest(unknown[0], known)}")
    return SpecFlags({name: document[key] for name, key in written.items()}, written)


def agent_of_spec(path: str | Path | None) -> object:
    """The agent that a file of flags names, if any."""
    return read_mapping(Path(path)).get("agent") if path else None


def nearest(unknown: str, known: Collection[str], dashes: str = "") -> str:
    """The end of a sentence about a name that does not exist: the nearest that does, if any is near."""
    near = difflib.get_close_matches(unknown.replace("-", "_"), [*known, *ELSEWHERE], 1)
    meant = ELSEWHERE.get(near[0], near[0]) if near else ""
    return f"; did you mean {dashes}{meant.replace('_', '-')}?" if meant else "."


def read_document(path: Path) -> Any:
    """What a YAML file holds. Raises UserError."""
    text = read_text(path)
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = ", ".join(filter(None, (error.context, error.problem)))
        raise UserError(f"The spec {path} cannot be read{where}: {problem}.") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(f"The spec {path} cannot be read at line {line}: {error.reason}.") from error
    except RecursionError as error:
        raise UserError(f"The spec {path} cannot be read: it nests too deep.") from error
    except ValueError as error:  # of a date, as 2001-99-99
        raise UserError(f"The spec {path} cannot be read: {error}.") from error


def read_text(path: Path) -> str:
    """The text of a file, less the mark that some editors put before it. Raises UserError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"The spec {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"The spec {path} cannot be read: it is not UTF-8 text.") from error


class _Loader(yaml.SafeLoader):
    """Refuses names that stand twice, dashes or not; what comes by a merge (`<<`) may be overridden."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            _check_text(key)
            before = seen.setdefault(_name(key), key)
            if before is not key:
                raise yaml.MarkedYAMLError(problem=_twice(before, key), problem_mark=key.start_mark)
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Of names that differ by dashes alone, the mapping's own or the first merge's stays."""
        super().flatten_mapping(node)
        node.value = [*{_name(key): (key, value) for key, value in node.value}.values()]


def _check_text(key: yaml.Node) -> None:
    if not isinstance(key, yaml.ScalarNode):
        problem = "a name must be text, and this one is a list or a mapping"
    elif key.tag not in (TEXT, MERGE):
        problem = f"to YAML the name {key.value} is no text: write it in quotes, '{key.value}'"
    else:
        return
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)


def _name(key: yaml.Node) -> str:
    return str(key.value).replace("-", "_")


def _twice(before: yaml.Node, key: yaml.Node) -> str:
    line = before.start_mark.line + 1
    if key.tag == MERGE:
        return f"<< stands here and in line {line}: name all in one list, <<: [*one, *other]"
    if before.value == key.value:
        return f"{key.value} stands here and in line {line}: keep one of them"
    return f"{key.value} is the same name as {before.value} in line {line}: keep one of them"
