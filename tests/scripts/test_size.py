"""Sizes are counted as a person would count them."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

from scripts.size import Module, figures, modules

TEXT = '''"""A module."""

import os  # a comment


class Room:
    """A class."""

    def __init__(self, width: int, height: int) -> None:
        """Nothing."""
        self.area = (
            width * height
        )
'''


def test_a_module_is_counted() -> None:
    """Lines of code leave out comments, docstrings and blank lines, not the lines of one long statement."""
    module = Module(Path("rooms/room.py"), TEXT, ast.parse(TEXT))
    assert (module.lines, module.code_lines) == (13, 6)
    found = figures([module])
    assert found["statements"] == 7 and found["functions"] == 1
    assert found["most arguments of a constructor"] == "2 rooms/room.py"
    assert found["longest function"] == "5 rooms/room.py:__init__"


def test_tests_and_documents_are_no_product() -> None:
    places = {module.path.parts[0] for module in modules()}
    assert "memory" in places and not {"tests", "docs", "results"} & places


def test_names_may_have_spaces(tmp_path: Path) -> None:
    (tmp_path / "a room.py").write_text(TEXT)
    for words in (["init", "-q"], ["add", "a room.py"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert [module.path for module in modules(tmp_path)] == [Path("a room.py")]
