"""What is compiled does what it does uncompiled, and is kept for later processes where it can be."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest

import kernels
import memory
from kernels import choice
from kernels.loops.compiled import compiled, external

MODULES = [
    importlib.import_module(module.name) for module in pkgutil.iter_modules(kernels.__path__, "kernels.")
]


def _compiled_in(module: ModuleType) -> dict[str, ModuleType | None]:
    """Where each compiled function that a module knows is written."""
    known = vars(module).items()
    return {
        name: inspect.getmodule(value.py_func)
        for name, value in known
        if isinstance(value, numba.core.registry.CPUDispatcher)
    }


def test_what_calls_compiled_functions_of_other_files_is_not_compiled() -> None:
    """It would be kept on disk with the old ones inside when that other file changes."""
    for module in MODULES:
        homes = set(_compiled_in(module).values())
        assert module not in homes or homes == {module}, module


def test_a_function_that_cannot_be_kept_is_compiled_all_the_same() -> None:
    """As where neither the code's place nor a home can be written: here, since it is in no file."""
    names: dict[str, Any] = {}
    exec("def twice(x):\n    return 2 * x", names)
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(names["twice"])
    assert compiled(names["twice"])(21) == 42


@pytest.mark.parametrize(
    ("module", "missing"),
    [("lz4.block._block", "LZ4_no_such_thing"), ("no_such_module", "no_such_module"), ("sys", "__file__")],
)
def test_where_a_function_of_c_is_missing_plain_twins_compute(
    monkeypatch: pytest.MonkeyPatch, module: str, missing: str
) -> None:
    """A compiled function that calls what is not there would end the process."""
    monkeypatch.setattr(choice, "_missing", "")
    assert external(module, "LZ4_no_such_thing", "void()") is None
    assert missing in choice._missing and not choice.compiled_in_use()
    assert compiled(len) is len


SOURCE = """
from kernels.loops.compiled import compiled

@compiled
def answer(x):
    return x + {number}

print(answer(1), answer(1.5), sum(answer.stats.cache_hits.values()))
"""


def _printed(folder: Path, *words: str) -> tuple[str, str]:
    """What a Python of its own says there, and what it warns of."""
    project = str(Path(memory.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": project}
    command = [sys.executable, *words]
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return found.stdout.strip(), found.stderr


def _answers(folder: Path, number: int = 41) -> str:
    """What a process of its own prints whose source adds `number`."""
    (folder / "answer.py").write_text(SOURCE.format(number=number))
    return _printed(folder, "answer.py")[0]


def _kept(folder: Path, ending: str) -> list[Path]:
    return sorted((folder / "__pycache__").glob(f"*.{ending}"))


def test_later_processes_find_what_was_compiled_until_the_source_changes(tmp_path: Path) -> None:
    assert [_answers(tmp_path), _answers(tmp_path)] == ["42 42.5 0", "42 42.5 2"]
    assert _answers(tmp_path, 1) == "2 2.5 0"
    assert len(_kept(tmp_path, "nbi")) == 2  # files of either source: neither can meet the other's
    for data in _kept(tmp_path, "nbc"):
        data.unlink()  # as after a kill between the index and the data
    assert _answers(tmp_path) == "42 42.5 0"


@pytest.mark.parametrize(
    ("ending", "keep"),
    [
        ("nbi", 30),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("nbi", 0), ("nbc", 0), ("nbc", 30))),
    ],
)
def test_what_is_damaged_on_disk_is_compiled_again(tmp_path: Path, ending: str, keep: int) -> None:
    """Cut short, as by a loss of power."""
    _answers(tmp_path)
    for file in _kept(tmp_path, ending):
        file.write_bytes(file.read_bytes()[:keep])
    assert _answers(tmp_path) == "42 42.5 0"
    assert _answers(tmp_path) == "42 42.5 2"


FOUND = """
import sys

sys.path.append({project!r})
import numpy as np
from {ours}kernels.layouts import FAN_OUT
from {ours}kernels.loops.sum_tree import find_leaves

sys.path.remove({project!r})
nodes = np.zeros(FAN_OUT + 1)
nodes[:3] = 3, 1, 2
print(find_leaves(nodes, np.array([0, FAN_OUT]), np.array([3.5])), sum(find_leaves.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_a_users_program_and_ours_keep_what_they_compile_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept imports our modules, which a user's program has below rainbow_iqn_apex alone."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    said = []
    for ours in ("", "rainbow_iqn_apex.") * 2:
        source = FOUND.format(project=str(Path(memory.__file__).parents[1]), ours=ours)
        (tmp_path / "asks.py").write_text(source)
        command = [sys.executable, "asks.py"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert ended.stderr == ""
        said.append(ended.stdout)
    assert said == ["[1] 0\n", "[1] 0\n", "[1] 1\n", "[1] 1\n"]


def test_a_place_that_stops_taking_files_is_no_fault(tmp_path: Path) -> None:
    """As a full disk."""
    _answers(tmp_path)
    shutil.rmtree(tmp_path / "__pycache__")
    (tmp_path / "full.py").write_text(
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nimport answer\n"
    )
    printed, warned = _printed(tmp_path, "-B", "full.py")
    assert printed == "42 42.5 0" and "compiled by each process" in warned
