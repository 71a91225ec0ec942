"""Who may import whom: the plan of the house, and no circles."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]


class Rule(NamedTuple):
    """What the modules of a room may import besides the standard library and their own room."""

    rooms: frozenset[str]
    """Rooms, or single modules of them."""
    packages: frozenset[str]


def _rule(rooms: str = "", packages: str = "") -> Rule:
    return Rule(frozenset(rooms.split()), frozenset(packages.split()))


LOOPS = "acting event_log evaluation learning supervision"
EVERY_ROOM = f"args agents envs kernels memory models reporting {LOOPS}"
SETTINGS = " ".join(
    f"{room}.settings" for room in "acting agents cluster envs evaluation live memory wiring".split()
)
RULES: dict[str, Rule] = {
    "args": _rule(f"{SETTINGS} own_code parameters", "pydantic"),
    "parameters": _rule(packages="pydantic pydantic_core"),
    "parameters.spec_file": _rule(packages="yaml"),
    "own_code": _rule(packages="pydantic"),
    "own_code.folder_imports": _rule(),
    "envs": _rule("own_code", "ale_py cv2 google grpc gymnasium minatar miniworld numpy pyglet vizdoom"),
    "envs.check": _rule(f"{EVERY_ROOM} own_code wiring", "gymnasium numpy"),
    "kernels": _rule(packages="isal llvmlite lz4 numba numpy torch"),
    "memory": _rule("kernels reporting.tables", "hiredis isal lz4 msgpack numpy redis redlock zstandard"),
    "memory.runs.__main__": _rule("supervision.process", "redis"),
    "models": _rule("kernels", "torch"),
    "agents": _rule(
        "envs.legal kernels models memory.replay.batch memory.rollouts.rollout own_code", "numpy torch"
    ),
    "reporting": _rule(packages="cv2 matplotlib mlflow numpy plotly tensorboard trackio wandb"),
    "event_log": _rule(
        "acting envs memory own_code reporting", "cv2 gymnasium h5py minari msgpack numpy zstandard"
    ),
    "event_log.__main__": _rule("reporting supervision.process", "numpy"),
    "acting": _rule(
        "agents memory envs reporting learning.saved.snapshot", "cv2 gymnasium numpy safetensors torch"
    ),
    "learning": _rule(f"agents memory envs reporting {LOOPS}", "numpy redis safetensors torch"),
    "evaluation": _rule(
        f"agents memory envs reporting {LOOPS}", "ale_py cv2 gymnasium numpy plotly torch tqdm"
    ),
    "supervision": _rule("memory reporting", "redis rich"),
    "live": _rule(
        "acting agents args envs evaluation memory own_code reporting wiring",
        "cv2 dash flask numpy plotly redis torch werkzeug",
    ),
    "lab": _rule(f"args parameters.spec_file reporting {LOOPS}", "numpy pydantic yaml"),
    "lab.search": _rule(
        f"args cluster.ray_session parameters.spec_file reporting {LOOPS}", "numpy optuna pydantic ray yaml"
    ),
    "cluster": _rule("args memory supervision wiring.code wiring.starting", "ray"),
    "wiring": _rule(f"{EVERY_ROOM} own_code", "numpy redis safetensors torch"),
    "wiring.starting": _rule("args envs memory own_code.folder_imports reporting.model_files supervision"),
    "rainbow_iqn_apex": _rule(f"{EVERY_ROOM} own_code wiring", "gymnasium numpy pandas torch"),
    "benchmarks": _rule(f"{EVERY_ROOM} wiring", "numpy playwright rich torch"),
    "benchmarks.small.sb3": _rule(packages="stable_baselines3 torch"),  # runs in an environment of its own
    "launch_learner": _rule(f"{EVERY_ROOM} parameters.usage wiring"),
    "launch_actor": _rule(f"{EVERY_ROOM} parameters.usage wiring"),
    "test_multiple_seed": _rule(f"{EVERY_ROOM} parameters.usage wiring"),
    "start_learning": _rule(f"{EVERY_ROOM} own_code parameters.usage wiring"),
    "launch_cluster": _rule("args cluster envs memory.server.connection parameters.usage supervision wiring"),
    "live_page": _rule("args live memory parameters.usage supervision"),
    "run_lab": _rule(f"{EVERY_ROOM} lab wiring"),
}
"""The longest name that fits is a module's rule. wiring/ is what the launchers have in common;
they may not import each other.
"""


def _modules() -> dict[str, Path]:
    """Dotted name -> file, of everything that is a part of the program."""
    rooms = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]
    files = [*ROOT.glob("*.py"), *(path for room in rooms for path in room.rglob("*.py"))]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }


MODULES = _modules()


@cache
def _imports(module: str) -> frozenset[str]:
    """Dotted names that `module` imports, wherever in it; a name from one of our packages with its module."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{module} imports by a relative name"
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            names.update(below & MODULES.keys())
            names.update({node.module} if below - MODULES.keys() else ())
    return frozenset(names)


def _rule_name(module: str) -> str:
    """The longest name of RULES that is `module` or a package around it; its room's name where none is."""
    name = module
    while name not in RULES and "." in name:
        name = name.rpartition(".")[0]
    return name


def _faults(module: str) -> Iterator[str]:
    room = module.partition(".")[0]
    rule = RULES[_rule_name(module)]
    for name in _imports(module):
        top = name.partition(".")[0]
        if top == room or top in sys.stdlib_module_names or top in rule.packages:
            continue
        if not {top, name.rpartition(".")[0], name} & (rule.rooms | {"parameters.declare"}):
            yield f"{module} imports {name}"


def test_every_module_has_a_rule() -> None:
    """A new room or launcher enters the table before it enters the house."""
    assert {_rule_name(module) for module in MODULES} == RULES.keys()


@pytest.mark.parametrize("name", RULES)
def test_a_room_imports_only_what_the_table_allows(name: str) -> None:
    modules = [module for module in MODULES if _rule_name(module) == name]
    assert [fault for module in modules for fault in _faults(module)] == []


def test_no_circles() -> None:
    """graphlib raises CycleError and names the circle."""
    graph = {module: _imports(module) & MODULES.keys() - {module} for module in MODULES}
    assert set(TopologicalSorter(graph).static_order()) == MODULES.keys()


MOST_FILES = 12
FULLER = {"agents": 13}
"""Only lower them."""


def test_no_folder_is_too_full() -> None:
    """A dozen modules of one idea, besides what opens the folder and what runs it; launchers stand apart."""
    modules = Counter(str(path.parent.relative_to(ROOT)) for path in MODULES.values() if path.stem[0] != "_")
    del modules["."]
    assert {room: count for room, count in modules.items() if count > FULLER.get(room, MOST_FILES)} == {}


TWINS = {"Tracker"}
"""One class for each service, of which a run has one."""


def test_a_name_stands_for_one_class() -> None:
    """A reader who searches for a public class of the product's rooms finds one."""
    rooms = [path for module, path in MODULES.items() if module.partition(".")[0] != "benchmarks"]
    names = Counter(
        node.name
        for path in rooms
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert len(names) > 300
    assert {name for name, count in names.items() if count > 1} == TWINS
