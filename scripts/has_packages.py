"""Say whether this interpreter can run the project: `python has_packages.py requirements/core.txt ...`.

Uses the standard library only and runs on any Python 3, since it is asked before anything is installed.
Exit code 0: every package is there (one line on stderr when versions differ from the pins); 1: some lack,
named on stderr.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

OLDEST_PYTHON = (3, 11)
STANDS_IN_FOR = {"opencv-python": "opencv-python-headless"}
"""Package -> another one that serves as well: the build without a display offers the same module."""


def pins(files: list[str]) -> dict[str, str]:
    """Package name to pinned version; pins for one kind of Python only (with a marker) are left out."""
    lines = [line.strip() for file in files for line in Path(file).read_text().splitlines()]
    wanted = [line for line in lines if line and not line.startswith("#") and ";" not in line]
    return dict(line.split("==") for line in wanted)


def installed(name: str) -> str | None:
    """The version that is installed, without a build's suffix such as +cpu; None where there is none."""
    for candidate in (name, STANDS_IN_FOR.get(name, name)):
        try:
            return metadata.version(candidate).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return None


def main() -> int:
    """Compare what is installed with the pins."""
    if sys.version_info < OLDEST_PYTHON:
        print("Python {}.{}, too old".format(*sys.version_info), file=sys.stderr)
        return 1
    pinned = pins(sys.argv[1:])
    found = {name: installed(name) for name in pinned}
    missing = [name for name, version in found.items() if version is None]
    if missing:
        print(f"no {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else ""), file=sys.stderr)
        return 1
    other = [f"{name} {found[name]} for {pin}" for name, pin in pinned.items() if found[name] != pin]
    if other:
        print("other versions than pinned: " + ", ".join(other), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
