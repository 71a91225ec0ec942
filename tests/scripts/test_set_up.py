"""The shell set-up, in a folder of its own with tiny requirement files and a stand-in for opencv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ("requirements/torch.txt", "requirements/core.txt")


class Machine:
    """A checkout of the set-up alone."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        shutil.copytree(
            ROOT / "scripts", self.checkout / "scripts", ignore=shutil.ignore_patterns("__pycache__")
        )
        (self.checkout / "requirements").mkdir()
        for name in REQUIREMENTS:
            (self.checkout / name).touch()
        self.modules = folder / "modules"
        self.modules.mkdir()
        (self.modules / "cv2.py").touch()
        self.environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(self.modules)}

    def set_up(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Source the set-up; standard output is the interpreter that it chose."""
        command = ["bash", "-c", 'source "$0"; echo "$PYTHON"', str(self.checkout / "scripts" / "setup.sh")]
        environment = {**self.environment, **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    def only_tools(self, folder: Path, *tools: str) -> str:
        """A PATH with these programs and no others."""
        folder.mkdir()
        for tool in ("bash", "dirname", "flock", "mkdir", "rm", "sed", "sha256sum", "tail", "touch", *tools):
            found = shutil.which(tool)
            assert found is not None, tool
            (folder / tool).symlink_to(found)
        return str(folder)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="no environment is active")
@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_with_the_packages_is_used(machine: Machine, variable: str) -> None:
    for name in REQUIREMENTS:
        shutil.copy(ROOT / name, machine.checkout / name)
    run = machine.set_up(**{variable: sys.prefix})
    assert run.stdout.strip() == f"{sys.prefix}/bin/python", run.stderr
    assert not (machine.checkout / ".venv").exists()


def test_a_venv_is_made_once_again_after_an_interruption_and_again_for_new_pins(machine: Machine) -> None:
    venv = machine.checkout / ".venv"
    venv.mkdir()
    (venv / ".unfinished").touch()
    (venv / "leftover").touch()

    first = machine.set_up()
    assert first.stdout.strip() == str(venv / "bin" / "python"), first.stderr
    assert "Making .venv" in first.stderr
    assert not (venv / "leftover").exists()
    assert not (venv / ".unfinished").exists()

    second = machine.set_up()
    assert second.returncode == 0
    assert second.stderr == "", "nothing to do, nothing to say"

    (machine.checkout / "requirements/core.txt").write_text("# a changed pin\n")
    third = machine.set_up()
    assert "Installing requirements/core.txt" in third.stderr
    assert "Making .venv" not in third.stderr
    assert "requirements/torch.txt" not in third.stderr

    add_extras(machine)


def wheel(folder: Path, name: str, *needed: str) -> Path:
    """An empty package."""
    path = folder / f"{name}-1-py3-none-any.whl"
    needs = "".join(f"Requires-Dist: {each}\n" for each in needed)
    with zipfile.ZipFile(path, "w") as file:
        for part, text in {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{needs}",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }.items():
            file.writestr(f"{name}-1.dist-info/{part}", text)
    return path


def add_extras(machine: Machine) -> None:
    """To a .venv that is there already."""
    (machine.checkout / "requirements/large.txt").touch()
    added = machine.set_up(EXTRAS="large")
    assert added.returncode == 0
    assert "Installing requirements/large.txt" in added.stderr
    assert "Making .venv" not in added.stderr
    assert machine.set_up(EXTRAS="large").stderr == "", "once"

    unnamed = wheel(machine.checkout, "unnamed")
    needy = wheel(machine.checkout, "needy", f"unnamed @ {unnamed.as_uri()}")
    (machine.checkout / "requirements/needy.txt").write_text(f"{needy}\n")
    assert "Installing what those need besides" in machine.set_up(EXTRAS="needy").stderr
    assert list(machine.checkout.glob(".venv/lib/*/site-packages/unnamed-1.dist-info"))

    (machine.checkout / "requirements/rare.txt").write_text("./no-such-folder\n")
    failed = machine.set_up(EXTRAS="large rare")
    assert failed.returncode == 1
    assert "Set-up stopped: pip could not install requirements/rare.txt." in failed.stderr
    assert machine.set_up(EXTRAS="large").stderr == "", "what was there before stays in use"


def test_packages_that_cannot_be_had_end_it_with_a_sentence(machine: Machine) -> None:
    (machine.checkout / "requirements/torch.txt").write_text("./no-such-folder\n")
    run = machine.set_up()
    assert run.returncode == 1
    assert "Set-up stopped: pip could not install requirements/torch.txt." in run.stderr
    assert (machine.checkout / ".venv" / ".unfinished").exists(), "the next start makes it anew"


def test_without_python_there_is_one_sentence(machine: Machine, tmp_path: Path) -> None:
    run = machine.set_up(PATH=machine.only_tools(tmp_path / "bin"))
    assert run.returncode == 1
    assert (
        run.stderr
        == "Set-up stopped: no Python 3.11 or newer was found: install one and put it on the PATH.\n"
    )


def test_without_the_module_venv_there_is_one_sentence(machine: Machine, tmp_path: Path) -> None:
    path = machine.only_tools(tmp_path / "bin")
    python = tmp_path / "bin" / "python3"
    python.write_text(f'#!/bin/bash\n[[ $* == *ensurepip* ]] && exit 1\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    run = machine.set_up(PATH=path)
    assert run.returncode == 1
    assert run.stderr.startswith(f"Set-up stopped: {python} has no module venv: install it")


def test_an_unknown_extra_is_named(machine: Machine) -> None:
    run = machine.set_up(EXTRAS="labyrinth")
    assert run.returncode == 1
    assert run.stderr == (
        "Set-up stopped: there is no extra labyrinth: EXTRAS may name maze, vizdoom, minatar, box2d, mujoco,"
        " multi, minari, search, cluster, page, notebooks, unity, docs, wandb, mlflow and trackio.\n"
    )


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="no environment is active")
def test_mazes_need_opengl(machine: Machine, tmp_path: Path) -> None:
    (machine.checkout / "requirements/maze.txt").touch()
    (machine.modules / "pyglet").mkdir()
    (machine.modules / "pyglet" / "__init__.py").touch()
    (machine.modules / "pyglet" / "gl.py").write_text("raise ImportError('no EGL')\n")
    path = machine.only_tools(tmp_path / "bin", "redis-server")  # no apt-get
    assert machine.set_up(VIRTUAL_ENV=sys.prefix, PATH=path).returncode == 0
    run = machine.set_up(VIRTUAL_ENV=sys.prefix, PATH=path, EXTRAS="maze")
    assert run.returncode == 1
    assert "no EGL" in run.stderr
    assert "Set-up stopped: mazes need OpenGL without a display (Debian and Ubuntu: apt-get" in run.stderr
    (machine.modules / "pyglet" / "gl.py").write_text("")
    assert machine.set_up(VIRTUAL_ENV=sys.prefix, PATH=path, EXTRAS="maze").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [
        ("--game pong --nb-actor 2", ""),
        ("--game maze --nb-actor 2", "maze"),
        ("--nb-actor 2 --game=maze:4x4", "maze"),
        ("--game vizdoom:my_way_home", "vizdoom"),
        ("--game pettingzoo:pong_v3", "multi"),
        ("--game unity:gridworld --agent dqn", "unity"),
        ("--game=LunarLander-v3", "box2d"),
        ("--game HalfCheetah-v5", "mujoco"),
        ("--game Humanoid-v5 --agent naf", "mujoco"),
        ("--spec naf.yaml", "maze"),
        ("--spec=naf.yaml --seed 3", "maze"),
        ("--game amaze --run maze_1", ""),
    ],
)
def test_a_game_gets_its_extra(arguments: str, extras: str, tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "start_learning_atari.sh", tmp_path)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "setup.sh").write_text('echo "${EXTRAS:-}"; exit\n')
    (tmp_path / "naf.yaml").write_text("# game: pong\nagent: naf\ngame: 'maze:2'  # two rooms\n")
    run = subprocess.run(["bash", script, *arguments.split()], cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout.split() == extras.split()


@pytest.mark.parametrize(
    "script", ["start_learning_atari.sh", "start_learning_atari_virtual_env.sh", "run_tests.sh", ".ci/run"]
)
def test_entry_points_are_executable_bash(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    assert subprocess.run(["bash", "-n", ROOT / script], check=False).returncode == 0
