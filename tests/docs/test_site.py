"""The site of the documents, built as a reader builds it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Page(HTMLParser):
    """Where a page leads, what a browser loads for it, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag != "a":
            self.loaded += [values[name] for name in ("src", "href") if values.get(name)]


needs_sphinx = pytest.mark.skipif(importlib.util.find_spec("furo") is None, reason="needs the extra docs")


def test_the_first_page_names_every_document() -> None:
    """Those of docs/, and those that they link to: a link to a document without a page ends the build."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").splitlines()
    for document in ROOT.glob("docs/**/*.md"):
        links = re.findall(r"\]\(([^()#:]+\.md)[)#]", document.read_text(encoding="utf-8"))
        for target in {document, *((document.parent / link).resolve() for link in links)}:
            name = os.path.relpath(target.with_suffix(""), ROOT / "docs")
            assert name in ("index", *index), f"docs/index.md does not name {name}"


def build(words: list[str], source: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(source / "docs" / "site"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


def every_document_is_a_page(site: Path, pages: dict[Path, Page]) -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    for document in documents:
        assert site / document.relative_to(ROOT).with_suffix(".html") in pages


def links_lead_to_pages_and_anchors_that_exist(site: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else set()
            if not target.is_file() or (parts.fragment and unquote(parts.fragment) not in anchors):
                broken.append(f"{path.name}: {link}")
    assert not broken, broken[:20]


def nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for address in page.loaded:
            assert not urlsplit(address).netloc, f"{path} loads {address}"
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(encoding="utf-8").replace('"', "").replace("'", "")


def modules_are_documented(site: Path, pages: dict[Path, Page]) -> None:
    assert "agents.iqn.IqnAgent.act" in pages[site / "docs/api/agents.html"].anchors
    assert "rainbow_iqn_apex.train" in pages[site / "docs/api/rainbow_iqn_apex.html"].anchors


def addresses_elsewhere_are_listed(site: Path, pages: dict[Path, Page]) -> None:
    lines = (site / "external_links.txt").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("https://arxiv.org/abs/1710.02298") and "README" in line for line in lines)


@needs_sphinx
@pytest.mark.slow
def test_the_site_is_whole(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """One test of many parts, since every worker of pytest that got one would build it: a minute."""
    site = tmp_path / "site"
    built = build([str(site)])
    assert built.returncode == 0, built.stderr[-3000:]
    assert "WARNING" not in built.stderr
    assert str(site / "index.html") in built.stdout
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for part in (
        every_document_is_a_page,
        links_lead_to_pages_and_anchors_that_exist,
        nothing_is_loaded_from_elsewhere,
        modules_are_documented,
        addresses_elsewhere_are_listed,
    ):
        with subtests.test(part.__name__):
            part(site, pages)


@needs_sphinx
@pytest.mark.slow
def test_a_link_or_anchor_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "site", tmp_path / "docs" / "site", ignore=shutil.ignore_patterns("html"))
    (tmp_path / "docs" / "index.md").write_text("# Site\n\n[a](gone.md) [b](#gone) [c](../gone.py)\n")
    built = build([str(tmp_path / "out")], tmp_path)
    assert built.returncode == 1
    assert built.stderr.count("myst.xref_missing") == 3
