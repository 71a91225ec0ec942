"""Versions live in pyproject.toml, and the files that repeat them say the same."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    """A script as a module; scripts/ is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sync = load("sync_requirements")
has_packages = load("has_packages")


def pins(file: str) -> list[str]:
    lines = (ROOT / file).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("name", [*sync.GROUPS.values(), "environment.yml"])
def test_files_are_what_the_script_writes(name: str) -> None:
    assert (ROOT / name).read_text() == sync.render(sync.Source.read())[name]


def test_conda_installs_what_pip_installs() -> None:
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert dependencies[-1]["pip"] == pins("requirements/torch.txt") + pins("requirements/core.txt")
    assert any(str(package).startswith("redis-server") for package in dependencies)


def test_every_package_has_one_exact_version() -> None:
    """Extras that need the same package name the same version of it."""
    everything = [pins(file) for file in sync.GROUPS.values()]
    assert all(len(set(group)) == len(group) for group in everything)
    pinned = {pin for group in everything for pin in group}
    assert len({canonicalize_name(pin.partition("==")[0]) for pin in pinned}) == len(pinned)
    assert all("==" in pin for pin in pinned)


def test_torch_is_pinned_without_a_build_so_that_pip_picks_the_one_that_suits() -> None:
    assert pins("requirements/torch.txt")[0] == "torch==2.13.0"


def test_what_the_packages_need_in_turn_is_pinned_too() -> None:
    assert sync.missing_pins(sync.Source.read()) == []


def test_a_missing_pin_is_noticed() -> None:
    source = sync.Source.read()
    core = [pin for pin in source.indirect["core"] if not pin.startswith("mdurl==")]
    assert "mdurl" in str(
        sync.missing_pins(sync.Source(source.direct, {**source.indirect, "core": core}, source.conda))
    )


def test_what_an_extra_needs_is_pinned_in_its_own_file() -> None:
    source = sync.Source.read()
    lent = {**source.indirect, "maze": [], "test": [*source.indirect["test"], "pyglet==1.5.31"]}
    assert "pyglet==1.5.31" in sync.missing_pins(sync.Source(source.direct, lent, source.conda))


def test_what_an_extra_of_a_needed_package_brings_is_pinned() -> None:
    """trackio needs uvicorn[standard]."""
    source = sync.Source.read()
    trackio = [pin for pin in source.indirect["trackio"] if not pin.startswith("websockets==")]
    lacking = sync.Source(source.direct, {**source.indirect, "trackio": trackio}, source.conda)
    assert "websockets" in str(sync.missing_pins(lacking))


def test_every_extra_has_a_file_and_every_file_is_an_extra() -> None:
    extras = {path.stem for path in ROOT.glob("requirements/*.txt")} - sync.BASE.keys()
    assert extras == sync.EXTRAS.keys()


def test_the_interpreter_that_runs_the_tests_has_the_packages() -> None:
    """All but minari, without which its test is another one."""
    files = [str(ROOT / file) for group, file in sync.GROUPS.items() if group != "minari"]
    run = subprocess.run(
        [sys.executable, ROOT / "scripts" / "has_packages.py", *files], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_lacking_and_differing_packages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = tmp_path / "wanted.txt"
    monkeypatch.setattr(sys, "argv", ["has_packages.py", str(wanted)])
    wanted.write_text("# comment\nno-such-package==1\nneither-this==1\npytest==0.1\n")
    assert has_packages.main() == 1
    assert capsys.readouterr().err == "no no-such-package and 1 more\n"
    wanted.write_text("pytest==0.1\nno-such-package==1; python_version < '3'\n")
    assert has_packages.main() == 0
    assert capsys.readouterr().err == f"other versions than pinned: pytest {pytest.__version__} for 0.1\n"
