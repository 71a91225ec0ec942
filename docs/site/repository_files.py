"""Links from pages to files and folders of the repository: each gets a page that shows it.

A Markdown file may link to `../agents/iqn.py` or `../specs/`, as it does where the repository itself is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
PAGES = "files"
"""Folder within the site of the pages that show files of the repository."""
LANGUAGES = {".py": "python", ".yaml": "yaml", ".sh": "bash", ".md": "markdown", ".toml": "toml"}
MOST_BYTES = 60_000
"""Largest file that is shown. A page says only the size of a larger one, and of pictures and other files that
are no text.
"""

linked: set[Path] = set()
"""What pages link to."""


class FileLinks(SphinxTransform):
    """Turns links to files that are no pages into links to the pages that show them."""

    default_priority = 1  # before such a link becomes a download

    def apply(self, **_: Any) -> None:
        """Every link of one page."""
        for node in [*self.document.findall(_is_link)]:
            target = _target(Path(self.env.doc2path(self.env.docname)).parent, node["reftarget"])
            if target is not None and not self.env.found_docs.intersection({_document(target)}):
                linked.add(target)
                address = self.app.builder.get_relative_uri(self.env.docname, _page(target))
                node.replace_self(nodes.reference("", "", *node.children, refuri=address, internal=True))


def _is_link(node: nodes.Node) -> bool:
    if isinstance(node, addnodes.pending_xref):
        return bool(node.get("reftype") == "myst")
    return isinstance(node, addnodes.download_reference)


def _target(folder: Path, written: str) -> Path | None:
    path = Path(os.path.normpath(folder / written.partition("#")[0]))
    return path if written and path.exists() and path.is_relative_to(ROOT) else None


def _document(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix() if path.suffix == ".md" else ""


def _page(path: Path) -> str:
    return f"{PAGES}/{path.relative_to(ROOT).as_posix()}"


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file and folder that is linked; a folder's lists what is in it."""
    for path in sorted(linked):
        name = path.relative_to(ROOT).as_posix()
        body = _listing(path) if path.is_dir() else _shown(app, path)
        yield _page(path), {"title": name, "body": f"<h1>{escape(name)}</h1>{body}"}, "file.html"


def _listing(folder: Path) -> str:
    names = sorted(each.name for each in folder.iterdir() if each.name not in {"__pycache__", ".gitignore"})
    return f"<ul>{''.join(f'<li>{escape(name)}</li>' for name in names)}</ul>"


def _shown(app: Sphinx, path: Path) -> str:
    size = path.stat().st_size
    text = path.read_bytes() if size <= MOST_BYTES else b"\0"
    if b"\0" in text:
        return f"<p>{size:,} bytes; not shown here.</p>"
    highlighter = app.builder.highlighter
    language = LANGUAGES.get(path.suffix, "text")
    return str(highlighter.highlight_block(text.decode(errors="replace"), language, force=True))


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_transform(FileLinks)
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": False}  # `linked` is gathered in this process
