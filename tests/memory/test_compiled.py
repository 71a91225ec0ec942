"""What is compiled does what it does uncompiled, and is kept for later processes where it can be."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import numba
import pytest

import memory
from memory.compiled import compiled

NAMES = [module.name for module in pkgutil.iter_modules(memory.__path__)]
MODULES = [importlib.import_module(f"memory.{name}") for name in NAMES]


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
