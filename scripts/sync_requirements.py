"""Write the requirement files and environment.yml from pyproject.toml, the one place where versions live.

    python scripts/sync_requirements.py           write the files
    python scripts/sync_requirements.py --check   write nothing; exit code 1 when something is out of step

Both name what an installed package needs and pyproject.toml does not pin.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
BASE = {"torch": "requirements/torch.txt", "core": "requirements/core.txt"}
EXTRAS = {
    name: f"requirements/{name}.txt"
    for name in (
        "test maze vizdoom minatar box2d mujoco multi minari search cluster page page-test notebooks docs"
        " wandb mlflow trackio search-test malmo-test deploy-test"
    ).split()
}
"""Groups that are installed on top of BASE, each of them alone or with others."""
GROUPS = {**BASE, **EXTRAS}
HEADER = "# Written by scripts/sync_requirements.py from pyproject.toml: change it there.\n"
PYTHON_VERSIONS = ("3.11.0", "3.11.9", "3.12.0", "3.13.0", "3.14.0")
"""Every marker is tried on each of these, since one machine's Python shows only its own branch."""
PINNED_BY_TORCH = ("cuda-", "nvidia-", "triton")
"""torch's builds for GPUs name these with exact versions themselves, and its CPU builds do without."""


@dataclass(frozen=True)
class Source:
    """The tables of pyproject.toml that say what to install."""

    direct: Mapping[str, list[str]]
    indirect: Mapping[str, list[str]]
    conda: Mapping[str, str | list[str]]

    @classmethod
    def read(cls, path: Path = ROOT / "pyproject.toml") -> Source:
        """Parse the file; KeyError names a table that is missing."""
        tables = tomllib.loads(path.read_text())
        requirements = tables["tool"]["requirements"]
        return cls(tables["dependency-groups"], requirements["indirect"], requirements["conda"])

    def pins(self, group: str) -> list[str]:
        """Direct and indirect requirements of one group."""
        return [*self.direct[group], *self.indirect[group]]


def render(source: Source) -> dict[str, str]:
    """File name to its whole text."""
    files = {file: _requirements(source, group) for group, file in GROUPS.items()}
    return {**files, "environment.yml": _environment(source)}


def missing_pins(source: Source) -> list[str]:
    """Packages that installed ones need and no table pins, as `name==version`, on any supported Python."""
    installed = {canonicalize_name(each.name): each.version for each in importlib.metadata.distributions()}
    missing = {name for group in GROUPS for name in _missing(source, group)}
    return sorted(f"{name}=={installed.get(name, '?')}" for name in missing)


def _missing(source: Source, group: str) -> Iterator[NormalizedName]:
    """Names of those that `group` needs, when nothing else is installed besides BASE."""
    pins = source.pins(group)
    known = [*pins, *(pin for base in BASE for pin in source.pins(base))]
    pinned = {canonicalize_name(Requirement(pin).name) for pin in known}
    wanted = {canonicalize_name(needed.name) for pin in pins for needed in _needs(Requirement(pin))}
    return (name for name in wanted - pinned if not name.startswith(PINNED_BY_TORCH))


def _requirements(source: Source, group: str) -> str:
    direct, indirect = "\n".join(source.direct[group]), "\n".join(source.indirect[group])
    return f"{HEADER}{direct}\n" + (f"\n# needed by those\n{indirect}\n" if indirect else "")


def _environment(source: Source) -> str:
    lines = [f"name: {source.conda['name']}", "channels:"]
    lines += [f"  - {channel}" for channel in source.conda["channels"]]
    lines += ["dependencies:", *(f"  - {package}" for package in source.conda["dependencies"]), "  - pip:"]
    pins = (pin for group in BASE for pin in source.pins(group))
    lines += [f'      - "{pin}"' if ";" in pin else f"      - {pin}" for pin in pins]
    return HEADER + "\n".join(lines) + "\n"


def _needs(pin: Requirement) -> Iterator[Requirement]:
    try:
        declared = importlib.metadata.requires(pin.name) or []
    except importlib.metadata.PackageNotFoundError:  # another Python's branch, or opencv's headless twin
        return
    for text in declared:
        needed = Requirement(text)
        if needed.marker is None or any(needed.marker.evaluate(place) for place in _places(pin)):
            yield needed
            if needed.extras:
                yield from _needs(needed)


def _places(pin: Requirement) -> Iterator[dict[str, str]]:
    for version in PYTHON_VERSIONS:
        for extra in ("", *pin.extras):
            short = version.rpartition(".")[0]
            yield {"python_full_version": version, "python_version": short, "extra": extra}


def main() -> int:
    """Write or compare; 0 when everything is in step."""
    parser = argparse.ArgumentParser(description="Write requirement files from pyproject.toml.")
    parser.add_argument("--check", action="store_true", help="compare only")
    check: bool = parser.parse_args().check
    source = Source.read()
    complaints = [f"pyproject.toml lacks {pin}, which another package needs." for pin in missing_pins(source)]
    for name, text in render(source).items():
        path = ROOT / name
        if check and (not path.exists() or path.read_text() != text):
            complaints.append(f"{name} differs from pyproject.toml: run python scripts/sync_requirements.py.")
        elif not check:
            path.write_text(text)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
