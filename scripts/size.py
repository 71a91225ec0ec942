"""How large the program is: `python -m scripts.size [--json]`.

Counts what git tracks outside tests/, docs/ and results/: files, lines, statements and tokens of Python, the
median function and file, the longest function and constructor, the fullest folder.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tokenize import COMMENT, DEDENT, ENDMARKER, INDENT, NEWLINE, NL, TokenInfo, generate_tokens
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
NOT_PRODUCT = {"tests", "docs", "results"}
NO_CODE = {COMMENT, NL, NEWLINE, INDENT, DEDENT, ENDMARKER}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """What one file holds."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """All lines, blank ones and comments included."""
        return len(self.text.splitlines())

    @property
    def code_lines(self) -> int:
        """Lines with a token that is no comment and no docstring."""
        documentation = {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        lines = (range(token.start[0], token.end[0] + 1) for token in self._code())
        return len({*chain.from_iterable(lines)} - documentation)

    @property
    def tokens(self) -> int:
        """Tokens of code."""
        return sum(1 for _ in self._code())

    def functions(self) -> Iterator[Function]:
        """Functions and methods, nested ones too."""
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def _code(self) -> Iterator[TokenInfo]:
        tokens = generate_tokens(io.StringIO(self.text).readline)
        return (token for token in tokens if token.type not in NO_CODE)


def modules(root: Path = ROOT) -> list[Module]:
    """The program's files."""
    command = ["git", "ls-files", "-z", "*.py"]
    tracked = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    paths = [Path(name) for name in tracked.stdout.split("\0") if name]
    product = [path for path in paths if path.parts[0] not in NOT_PRODUCT and (root / path).is_file()]
    texts = {path: (root / path).read_text() for path in product}
    return [Module(path, text, ast.parse(text)) for path, text in texts.items()]


def figures(found: list[Module]) -> dict[str, float | str]:
    """Name -> figure."""
    functions = [(function, module) for module in found for function in module.functions()]
    lengths = [_length(function) for function, _ in functions]
    longest, its_module = max(functions, key=lambda each: _length(each[0]))
    constructors = [(_arguments(each), module) for each, module in functions if each.name == "__init__"]
    most_arguments, constructed = max(constructors, key=lambda each: each[0])
    (folder, files), *_ = Counter(module.path.parent for module in found).most_common(1)
    statements = [isinstance(node, ast.stmt) for module in found for node in ast.walk(module.tree)]
    return {
        "files": len(found),
        "lines": sum(module.lines for module in found),
        "lines of code": sum(module.code_lines for module in found),
        "statements": sum(statements),
        "tokens": sum(module.tokens for module in found),
        "functions": len(functions),
        "median lines of a function": statistics.median(lengths),
        "median lines of a file": statistics.median(module.lines for module in found),
        "longest file": max(f"{module.lines:4d} {module.path}" for module in found).strip(),
        "longest function": f"{_length(longest)} {its_module.path}:{longest.name}",
        "most arguments of a constructor": f"{most_arguments} {constructed.path}",
        "fullest folder": f"{files} {folder}",
    }


def _length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _arguments(function: Function) -> int:
    """Besides self."""
    arguments = function.args
    return len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs) - 1


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="How large the program is.")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    as_json = parser.parse_args().json
    found = figures(modules())
    print(json.dumps(found) if as_json else "\n".join(f"{name:32} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
