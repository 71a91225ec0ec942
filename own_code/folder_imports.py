"""Imports a folder's modules below a package of their own, where they see each other first.

`import models` in a file of such a folder is the `models` beside it, whatever else is called so. code.py
reads users' files in this way, and the package rainbow_iqn_apex our own modules in a user's program.
Standard library only, so that the package can begin with it.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "rainbow_iqn_apex"
"""The name by which our modules are imported from anywhere."""
PREFIX = __name__.removesuffix("own_code.folder_imports")
"""What our modules' names begin with in this process: "" in a program of ours, "rainbow_iqn_apex." in one of
a user's.
"""


def holds(folder: Path, name: str) -> bool:
    """Whether `import name` means a module of that folder.

    A folder without __init__.py counts only where a module of ours has its name.
    """
    if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
        return True
    return folder != ROOT and holds(ROOT, name) and any((folder / name).glob("*.py"))


class FolderFinder(MetaPathFinder):
    """Finds what stands below a package; what it finds imports its neighbours by their plain names."""

    def __init__(self, package: str, folder: Path) -> None:
        self._package, self._folder = package, folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As every finder of Python's."""
        if not fullname.startswith(f"{self._package}."):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, self.real_name)
        return spec

    def real_name(self, name: str) -> str:
        """The name in sys.modules of what a module of this folder calls `name`."""
        top = name.partition(".")[0]
        if top == PACKAGE:
            return name if PREFIX else name.removeprefix(f"{PACKAGE}.")
        if holds(self._folder, top):
            return f"{self._package}.{name}"
        return PREFIX + name if holds(ROOT, top) else name


def _is_free(name: str) -> bool:
    return name not in sys.builtin_module_names and PathFinder.find_spec(name) is None


class PlainNames(MetaPathFinder, Loader):
    """`import my_env`, wherever it stands, finds that module of the folder, unless another is called so.

    Entry points of gymnasium.register name a module as its author does.
    """

    def __init__(self, package: str, folder: Path) -> None:
        """`package`: below which the folder's modules are imported; an import here gives the same module."""
        self._package, self._folder = package, folder
        self._specs: dict[ModuleType, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As every finder of Python's."""
        top, dot, _ = fullname.partition(".")
        if not holds(self._folder, top):
            return None
        is_ours = sys.modules[top].__name__ == f"{self._package}.{top}" if dot else _is_free(top)
        return ModuleSpec(fullname, self) if is_ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module below the package."""
        module = importlib.import_module(f"{self._package}.{spec.name}")
        self._specs[module] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It ran already; its import gave it the spec of its plain name."""
        module.__spec__ = self._specs.pop(module)


class _Loader(SourceFileLoader):
    """Gives a module an `import` of its own."""

    def __init__(self, fullname: str, path: str, real_name: Callable[[str], str]) -> None:
        super().__init__(fullname, path)
        self._real_name = real_name

    def exec_module(self, module: ModuleType) -> None:
        """Run it."""
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        super().exec_module(module)

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, wanted: Iterable[str] = (), level: int = 0
    ) -> Any:
        """As `builtins.__import__`, with another name in sys.modules."""
        real = name if level else self._real_name(name)
        module = builtins.__import__(real, globals, locals, tuple(wanted or ()), level)
        if wanted or real == name:
            return module
        if not real.endswith(f".{name}"):
            raise ImportError(f"write `from {name} import ...`")
        top = real.removesuffix(name) + name.partition(".")[0]  # `import a.b` binds a
        return sys.modules[top]
