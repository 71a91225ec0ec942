"""What --help shows: little, at once, and nothing that the program does not read."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest

from agents.base import AgentError
from agents.names import ALL, CONTINUOUS, DISCRETE, misfit
from agents.registry import AGENTS
from agents.settings import NetworkSettings
from args import Args, read_args
from own_code.code import KINDS
from parameters.declare import Programs
from parameters.usage import ACTOR, CLUSTER, EVALUATION, LEARNER, LISTS, START_LEARNING, Page, read_by
from wiring.checks import check_agent_fits
from wiring.setting import setting_of

ROOT = Path(__file__).parents[1]
PAGES = {
    "launch_learner": LEARNER,
    "launch_actor": ACTOR,
    "test_multiple_seed": EVALUATION,
    "start_learning": START_LEARNING,
    "launch_cluster": CLUSTER,
}
PROGRAMS = pytest.mark.parametrize("program", PAGES)
HEAVY = "ale_py cv2 gymnasium matplotlib numba numpy plotly ray redis rich safetensors tensorboard torch"
"""Packages that take long to import."""
OF_LEARNERS = {"serial", "weights_normalised_by", "priority_exponent", "intrinsic"}
"""Code that an actor or an evaluation shares with learners reads these too; there they change nothing."""


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )


@cache
def _shown(program: str, *words: str) -> str:
    ended = _python(f"{program}.py", "--help", *words)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def _flags(text: str) -> set[str]:
    return {flag.replace("-", "_") for flag in re.findall(r"^  (?:-p_red, )?--([\w-]+)", text, re.MULTILINE)}


@pytest.mark.parametrize("program", [*PAGES, "run_lab"])
def test_help_of_a_program_comes_before_its_imports(program: str) -> None:
    """So do its complaints about a flag."""
    code = (
        "import runpy, sys\n"
        f"sys.argv[0] = '{program}.py'\n"
        f"try: runpy.run_path('{program}.py', run_name='__main__')\n"
        "finally: sys.stderr.write(' '.join(sys.modules))"
    )
    asked = [("--help",), ("--help", "all")] if program in PAGES else [("--help",)]
    for words, exit_code in [*((words, 0) for words in asked), (("--no-such-flag",), 2)]:
        ended = _python("-c", code, *words)
        assert ended.returncode == exit_code
        assert ("error: " in ended.stderr) == bool(exit_code)
        assert (program in ended.stdout) == (not exit_code)
        loaded = set(ended.stderr.split())
        assert "args" in loaded and loaded.isdisjoint(HEAVY.split())


@PROGRAMS
def test_help_fits_a_screen_and_comes_within_a_second(program: str) -> None:
    """Of a core's time, since others use this machine."""
    lines = _shown(program).splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 120
    assert max(map(len, _shown(program, "all").splitlines())) <= 120
    began = _seconds_of_children()
    _python(f"{program}.py", "--help")
    assert _seconds_of_children() - began < 1


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@PROGRAMS
def test_help_names_examples_agents_and_games(program: str) -> None:
    text = _shown(program)
    assert text.index("Examples:") < text.index("Flags that people look for:") < text.index(LISTS)
    assert text.rstrip().endswith("docs/flags.md has those of every program.")


@PROGRAMS
def test_examples_are_commands(program: str) -> None:
    for words, _ in PAGES[program].examples:
        read_args(words.split())


@pytest.mark.parametrize("name", sorted({*DISCRETE, *CONTINUOUS}))
def test_agents_are_listed_by_the_actions_that_they_choose(name: str) -> None:
    for actions, game in ((DISCRETE, "CartPole-v1"), (CONTINUOUS, "Pendulum-v1")):
        setting = setting_of(read_args(["--game", game, "--agent", name]))
        sentence = misfit(name, actions is DISCRETE)
        assert bool(sentence) == (name not in actions)
        with pytest.raises(AgentError, match=re.escape(sentence)) if sentence else nullcontext():
            check_agent_fits(setting)


def test_agents_by_name_are_those_there_are() -> None:
    assert {*DISCRETE, *CONTINUOUS, "random"} == AGENTS.keys() == {*ALL}
    agents, games = LISTS.split("\n\n")
    assert set(re.findall(r"\b[a-z_0-9]+(?=[, ])", agents)) > {*DISCRETE, *CONTINUOUS}
    kinds = re.findall(r"(\w+)(?=:[a-z0-9])", games)
    assert {*kinds} == {*KINDS, "lock"} - {"constant"}  # of probe:lock:24


def _all_of(page: Page) -> set[str]:
    return {name for names in read_by(page.reads, Args.__bases__).values() for name in names}


@PROGRAMS
def test_every_flag_that_a_program_reads_is_in_its_help(program: str) -> None:
    """`--help all` shows what its page says, which is what its code reads (`_read`)."""
    page = PAGES[program]
    assert _flags(_shown(program, "all")) == _all_of(page)
    assert ("(default: 0)" in _shown(program, "all")) == (program != "live_page")
    assert _flags(_shown(program)) == set(page.wanted) <= _all_of(page)
    learns = program in ("launch_learner", "start_learning", "launch_cluster")
    shared = set() if learns else OF_LEARNERS
    assert _read(program) <= _all_of(page) | shared


def test_every_flag_is_in_some_help_and_start_learning_has_those_of_its_processes() -> None:
    assert set.union(*map(_all_of, PAGES.values())) == set(Args.model_fields)
    by_place = {"id_actor", "gpu_number"}  # start_learning.py gives them to each process itself
    of_several_runs = {"seat_runs"}
    assert _all_of(START_LEARNING) | by_place | of_several_runs >= _all_of(LEARNER) | _all_of(ACTOR)


def test_the_actor_and_evaluation_show_nothing_of_learning() -> None:
    assert not _all_of(EVALUATION) & {"lr", "batch_size", "host_redis", "memory_capacity", "redis_conf"}
    assert not _all_of(ACTOR) & {"lr", "batch_size", "save_replay", "evaluation_episodes", "gpu_numbers"}
    assert not _all_of(LEARNER) & {"evaluation_episodes", "redis_conf", "gpu_numbers"}


def test_a_parameter_that_names_no_programs_is_of_its_group() -> None:
    assert "epochs" in _all_of(LEARNER) and "epochs" not in _all_of(ACTOR)
    assert Programs.EVALUATION not in Programs.RUN


@pytest.mark.parametrize("word", ["--help=all", "-h"])
def test_other_ways_to_ask(word: str) -> None:
    ended = _python("start_learning.py", "--game", "pong", word)
    assert ended.returncode == 0
    assert ("--kappa" in ended.stdout) == (word == "--help=all")


def test_a_pipe_that_closes_is_no_error() -> None:
    command = f"{sys.executable} start_learning.py --help all | head -1"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert ended.stderr == "" and ended.stdout.startswith("usage: ")


def test_every_flag_has_a_sentence() -> None:
    for name, field in Args.model_fields.items():
        assert field.description and len(field.description) > 15, name


def _read(program: str) -> set[str]:
    """Parameters that the code of a program names: `args.x`, and the fields of what `args.select` fills.

    Walks from `main` to whatever is called by a name of its own file or of wiring/.
    """
    files = [
        ROOT / f"{program}.py",
        *(path for path in ROOT.glob("wiring/*.py") if "surface" not in path.name),
    ]
    places = {node.name: (path, node) for path in reversed(files) for node in _definitions(path)}
    found: set[str] = set()
    todo, done = ["main"], set()
    while todo:
        name = todo.pop()
        if name in done or name not in places:
            continue
        done.add(name)
        path, node = places[name]
        for each in ast.walk(node):
            if isinstance(each, ast.Name | ast.Attribute):
                todo.append(each.id if isinstance(each, ast.Name) else each.attr)
            if isinstance(each, ast.Attribute) and ast.unparse(each.value).endswith("args"):
                found |= {each.attr} & Args.model_fields.keys()
            if isinstance(each, ast.Call) and ast.unparse(each.func).endswith(".select"):
                found |= _selected(path, ast.unparse(each.args[0]), program)
    return found


def _definitions(path: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node


def _selected(path: Path, kind: str, program: str) -> set[str]:
    """Parameters in a dataclass, or in those of all agents; acting, these use those of networks alone."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    is_agent = kind in ("kind.config_type", "RndBonusConfig")
    kinds = [agent.config_type for agent in AGENTS.values()] if is_agent else [vars(module)[kind]]
    acts = is_agent and program in ("launch_actor", "test_multiple_seed")
    fields = {field.name for each in kinds for field in dataclasses.fields(each)}
    names = {name for name in Args.model_fields if name.lower() in fields}
    return names & NetworkSettings.__annotations__.keys() if acts else names


def test_the_live_page_is_asked_about_no_game() -> None:
    text = _shown("live_page")
    assert "--page-port" in text and "--host-redis" in text and LISTS not in text and "--agent" not in text
