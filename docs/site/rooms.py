"""The directive `room`: every module of a room, with the docstrings of what it defines.

```{room} agents
```
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]


def modules(room: str) -> list[str]:
    """Dotted names of the modules of a folder, its own first; what starts with an underscore is not shown."""
    files = sorted(
        (ROOT / room).rglob("*.py"), key=lambda path: (path.parent, path.name != "__init__.py", path)
    )
    parts = (path.relative_to(ROOT).with_suffix("").parts for path in files)
    return [".".join(part for part in each if part != "__init__") for each in parts if each[-1] != "__main__"]


class Room(SphinxDirective):
    """Writes a heading and an `automodule` for each module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes of all modules."""
        text = "\n".join(
            f"## `{name}`\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n"
            for name in modules(self.arguments[0])
        )
        shown: list[nodes.Node] = self.parse_text_to_nodes(text, allow_section_headings=True)
        return shown


def literal_docstring(
    _app: Sphinx, _kind: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Stars before small letters and bars are text, as in `**flags` and `|x|`."""
    lines[:] = [
        re.sub(r"\*+(?=[a-z])|\|", lambda found: "".join(f"\\{sign}" for sign in found[0]), line)
        for line in lines
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_directive("room", Room)
    app.connect("autodoc-process-docstring", literal_docstring, priority=400)  # before napoleon's
    return {"parallel_read_safe": True}
