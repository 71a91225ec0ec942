"""Lists the links that lead out of the site in `external_links.txt`, to be looked at by hand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

found: defaultdict[str, set[str]] = defaultdict(set)


def note(_app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Remember the addresses of one page."""
    for reference in doctree.findall(nodes.reference):
        address = reference.get("refuri", "")
        if address.startswith(("http://", "https://")):
            found[address].add(page)


def write(app: Sphinx, error: Exception | None) -> None:
    """One line per address: itself and the pages that lead there."""
    if error is None:
        lines = [f"{address}  {', '.join(sorted(pages))}" for address, pages in sorted(found.items())]
        Path(app.outdir, "external_links.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("doctree-resolved", note)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
