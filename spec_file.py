"""Reads a YAML file of names and values. Names that stand twice are refused: YAML would take the last.

args.py and lab/ say what the names mean. No other input or output.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

MERGE = "tag:yaml.org,2002:merge"
TEXT = "tag:yaml.org,2002:str"


class SpecFileError(ValueError):
    """A file that cannot be read, or that says something twice: one sentence."""


def read_document(path: Path) -> Any:
    """What a YAML file holds. Raises SpecFileError."""
    try:
        return yaml.load(read_text(path), _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = ", ".join(filter(None, (error.context, error.problem)))
        raise SpecFileError(f"The spec {path} cannot be read{where}: {problem}.") from error
    except yaml.reader.ReaderError as error:
        line = read_text(path).count("\n", 0, error.position) + 1
        raise SpecFileError(f"The spec {path} cannot be read at line {line}: {error.reason}.") from error
    except RecursionError as error:
        raise SpecFileError(f"The spec {path} cannot be read: it nests too deep.") from error
    except SpecFileError:
        raise
    except ValueError as error:  # of a date, as 2001-99-99
        raise SpecFileError(f"The spec {path} cannot be read: {error}.") from error


def read_text(path: Path) -> str:
    """The text of a file, less the mark that some editors put before it. Raises SpecFileError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecFileError(f"The spec {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SpecFileError(f"The spec {path} cannot be read: it is not UTF-8 text.") from error


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
