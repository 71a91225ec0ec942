"""Build the site of the documents: `python docs/site`, after `EXTRAS=docs bash scripts/setup.sh`.

It is written to docs/site/html, or to the folder given after the command, afresh each time. Every warning of
Sphinx ends it with 1: a link without its page, an anchor without its heading, a page that no list names.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEFAULT = HERE / "html"


def main(words: list[str]) -> int:
    """Build, and say where the site is."""
    try:
        from sphinx.cmd.build import main as build
    except ImportError:
        print("The site needs Sphinx: EXTRAS=docs bash scripts/setup.sh installs it.", file=sys.stderr)
        return 2
    folder = Path(words[0]) if words else DEFAULT
    shutil.rmtree(folder, ignore_errors=True)
    strict = ["--fail-on-warning", "--keep-going", "--fresh-env"]
    doctrees = ["-d", str(folder / ".doctrees")]
    code: int = build([*strict, *doctrees, "-b", "html", "-c", str(HERE), str(HERE.parents[1]), str(folder)])
    shutil.rmtree(folder / ".doctrees", ignore_errors=True)
    if code == 0:
        print(f"The site is in {folder / 'index.html'}.")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
