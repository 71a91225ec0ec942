"""Sphinx's settings: the repository's Markdown as one site. `python docs/site` builds it."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "site")]

project = "Rainbow-IQN Ape-X"
author = "its authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "repository_files",
    "rooms",
    "external_links",
]

# The source folder is the repository: each page is the file that is also read on its own; none is copied.
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/**.md",
    "redis_conf/README.md",
    "results/README.md",
    "results/benchmark/*.md",
    "results/btr_ablation/*.md",
    "results/btr_cpu/*.md",
    "results/kept/**.md",
    "results/minatar/*.md",
]
exclude_patterns = [".*", "docs/site/html", "results/benchmark/runs", "tests"]
html_extra_path = ["front"]  # opened without a page's name, the site shows its first page

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
smartquotes_action = "qe"  # no dashes: `--game` in a sentence stays what one types
nitpicky = False  # types of PyTorch and NumPy have no page here

toc_object_entries = False  # thousands of them would stand in the side bar of every page

templates_path = ["templates"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = "Rainbow-IQN Ape-X"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "monokai"

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "signature"
autodoc_mock_imports = [
    "h5py",
    "mlflow",
    "trackio",
    "wandb",
    "malmoenv",
    "minari",
    "minatar",
    "miniworld",
    "optuna",
    "pyglet",
    "ray",
    "vizdoom",
]
python_maximum_signature_line_length = 90
suppress_warnings = ["ref.python"]  # a class that two modules show is no mistake
