"""A user's own environment or agent: code in a file or module of theirs, named on the command line.

>>> code = import_code("path/to/my_env.py:MyEnv")    # runs the file
>>> imported_code("my_env.py:MyEnv") is code

Code is run only for whoever asked for it: `import_code` gets what this process was given on its own command
line, in its own spec or as an argument of a Python call. What Redis, snapshots and other files say is only
looked up, by `imported_code`, and compared by its SHA-256.

A file sees the modules beside it first (folder_imports.py): a user's envs.py hides none of ours, and ours
hide none of a user's. `rainbow_iqn_apex.agents.base` always means ours, `agents.base` where the user has no
`agents`.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from own_code.folder_imports import ROOT, FolderFinder, PlainNames, holds
from parameters.declare import UserError

KINDS = ("constant", "malmo", "maze", "minatar", "pettingzoo", "probe", "unity", "vizdoom")
"""Words that stand before a colon in names of ours."""
FOLDERS = "RAINBOW_OWN_FOLDERS"
"""The variable by which a process that a user's code starts with multiprocessing (spawn, forkserver) finds
the packages of this one: it imports the launcher, and so this module, before the function that it is to run.
Nothing else reads it, and no code is run for it.
"""
SHOWN = 12
"""Characters of a SHA-256 that a sentence shows."""


class OwnCode(NamedTuple):
    """What was imported."""

    name: str  # as given, without the folder
    sha256: str  # of the file
    module: ModuleType
    what: str  # after the colon

    @property
    def thing(self) -> Any:
        """The class or function; UserError where the module has none of that name."""
        if not hasattr(self.module, self.what):
            raise UserError(f"{self.name}: {self.module.__file__} has nothing that is called {self.what}.")
        return getattr(self.module, self.what)


_GIVEN: dict[str, OwnCode] = {}


def names_code(text: str) -> bool:
    """Whether a game or agent is `path/to/file.py:Name` or `module:Name`; nothing is looked for."""
    head, colon, name = text.rpartition(":")
    return bool(colon and head and name) and text.partition(":")[0] not in KINDS


def short_name(text: str) -> str:
    """The name under which runs and files know it: that of a file without its folder. Others stay."""
    folder, slash, name = text.rpartition("/")
    return name if slash and ".py:" in name and names_code(text) else text


def imported_code(name: str) -> OwnCode | None:
    """The code of that name, if this process was given it."""
    return _GIVEN.get(short_name(name))


def full_name(name: str) -> str:
    """How it can be named in any folder: a file that was imported with its path. Others stay."""
    code = imported_code(name)
    file = None if code is None or ".py:" not in code.name else _file(code.module)
    return name if code is None or file is None else f"{file}:{code.what}"


def import_code(text: str) -> OwnCode:
    """Import the code that `text` names. Raises UserError.

    Whoever calls this has `text` from the user of this very process.
    """
    place, _, what = text.rpartition(":")
    path = Path(place).expanduser().resolve() if place.endswith(".py") else None
    if path is not None and not path.is_file():
        raise UserError(f"There is no file {place}, which {text} names.")
    if path is None and "/" in place:
        raise UserError(
            f"{text} names neither a file (path/to/my_env.py:MyEnv) nor a module (my_package.envs:MyEnv)."
        )
    known = imported_code(text)
    if known is not None and _is_current(known) and path in (None, _file(known.module)):
        return known
    here = (code for code in _GIVEN.values() if path and path == _file(code.module))
    same = next((code.module for code in here if _is_current(code)), None)
    try:
        module = same or (_import_file(path) if path else _import_module(place))
    except (Exception, SystemExit) as error:
        raise UserError(f"{text} cannot be imported: {error_text(error)}.") from error
    code = _GIVEN[short_name(text)] = OwnCode(short_name(text), _sha256(module), module, what)
    return code


def _is_current(code: OwnCode) -> bool:
    return _sha256(code.module) == code.sha256


def _import_file(path: Path) -> ModuleType:
    package = _folder_package(path.parent)
    _forget(package)
    return importlib.import_module(f"{package}.{path.stem}")


def _import_module(name: str) -> ModuleType:
    """From the folder in which the program was started, or an installed one."""
    if holds(Path.cwd(), name.partition(".")[0]):
        return importlib.import_module(f"{_folder_package(Path.cwd())}.{name}")
    return importlib.import_module(name)


def _file(module: ModuleType) -> Path | None:
    return Path(module.__file__) if module.__file__ else None


def _sha256(module: ModuleType) -> str:
    file = _file(module)
    return hashlib.sha256(file.read_bytes()).hexdigest() if file else ""


def error_text(error: BaseException) -> str:
    """What went wrong in code that is not ours, and where, on one line; in a user's own file if possible."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "importlib" not in each.filename]
    frames = [each for each in frames if _is_users(Path(each.filename))] or frames
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    says = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".:")
    return f"{says}{place}"


def raised_in(error: BaseException) -> str:
    """The name of the module whose code raised it."""
    *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
    return str(innermost.f_globals["__name__"])


def _is_users(file: Path) -> bool:
    """Whether it is a file that was given, or stands beside one; our own folder is no user's."""
    given = map(_file, (code.module for code in _GIVEN.values()))
    return file in given or (str(file.parent) in _own_folders() and file.parent != ROOT)


def _own_folders() -> list[str]:
    return [each for each in os.environ.get(FOLDERS, "").split(os.pathsep) if each]


def _folder_package(folder: Path) -> str:
    """The package below which the modules of a folder are imported."""
    name = f"own_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        sys.modules[name] = package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.meta_path[:0] = [FolderFinder(name, folder), PlainNames(name, folder)]
        os.environ[FOLDERS] = os.pathsep.join(dict.fromkeys([*_own_folders(), str(folder)]))
    return name


def _forget(package: str) -> None:
    """What was imported below it: files may have changed since."""
    importlib.invalidate_caches()
    for name, module in list(sys.modules.items()):
        if getattr(module, "__name__", "").startswith(f"{package}."):
            del sys.modules[name]


# In a child that multiprocessing starts: `python -c "from multiprocessing.spawn import ..."`.
if any("from multiprocessing." in word for word in sys.orig_argv):
    for _folder in _own_folders():
        _folder_package(Path(_folder))
