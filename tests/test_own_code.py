"""A user's own environment and agent, in files outside the repository."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from agents.base import AgentError
from agents.registry import agent_type
from args import UserError, read_args
from envs.config import EnvError
from envs.registry import canonical_game
from memory.runs.keys import Keys
from memory.server.connection import Client
from own_code.code import import_code, imported_code, names_code, short_name
from tests.processes import ONE_THREAD, ROOT
from wiring.code import canonical
from wiring.record.page import run_facts
from wiring.setting import setting_of_run

CORRIDOR = '''
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

import envs
from models import NAME


class Corridor(gymnasium.Env):
    """Go right to the end."""

    def __init__(self, size=envs.SIZE):
        self.size, self.name = size, NAME
        self.observation_space = Dict(place=Box(0, size, (1,)), last=Discrete(2))
        self.action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = 0, 0
        return self._look(), {}

    def step(self, action):
        from agents import helper  # a folder of the user's

        self.place = max(self.place + helper.way(action), 0)
        self.steps += 1
        return self._look(), float(self.place == self.size), self.place == self.size, self.steps == 40, {}

    def _look(self):
        return {"place": np.array([self.place], np.float32), "last": int(self.place == self.size)}


gymnasium.register("Corridor-v0", entry_point="my_env:Corridor", max_episode_steps=30)


def not_one():
    return 5


def quits():
    raise SystemExit(0)


def inverts():
    return np.linalg.inv(np.zeros((2, 2)))
'''
SMALL = (
    "--agent dqn --hidden-size 16 --memory-capacity 2000 --learn-start 64 --batch-size 8 --target-update 50"
    " --lr 0.001 --log-interval 100 --threads 1 --redis-patience 10"
).split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder, with modules that are called as rooms of ours."""
    place = tmp_path / "mine"
    (place / "agents").mkdir(parents=True)
    (place / "my_env.py").write_text(CORRIDOR)
    (place / "envs.py").write_text("SIZE = 4\n")
    (place / "models.py").write_text("NAME = 'mine'\n")
    (place / "agents" / "helper.py").write_text("def way(action):\n    return 1 if action else -1\n")
    return place


def run(folder: Path, program: str, *words: object, code: int = 0) -> str:
    """What a program says that was started from the user's folder; it must end with `code`."""
    command = [sys.executable, *([] if program == "-m" else [str(ROOT / program)]), *map(str, words)]
    ended = subprocess.run(
        command, cwd=folder, env=_without_path(), capture_output=True, text=True, timeout=200
    )
    said = ended.stdout + ended.stderr
    assert ended.returncode == code, said
    assert "Traceback" not in said
    return said


def _without_path() -> dict[str, str]:
    return {name: value for name, value in ONE_THREAD.items() if name != "PYTHONPATH"}


def test_an_id_that_a_package_of_ones_own_registers_is_found(folder: Path) -> None:
    """Its entry point names the package as its author does; a later change of it counts."""
    (folder / "rooms").mkdir()
    (folder / "rooms" / "__init__.py").touch()
    (folder / "rooms" / "made.py").write_text(
        "from envs import SIZE\nfrom my_env import Corridor\n\ndef make():\n    return Corridor(SIZE)\n"
    )
    (folder / "rooms" / "envs.py").write_text(
        "import gymnasium\n\ngymnasium.register('Rooms-v0', entry_point='rooms.made:make')\n"
    )
    assert "rooms.envs:Rooms-v0" in run(folder, "envs/check.py", "rooms.envs:Rooms-v0")


def test_names() -> None:
    assert names_code("a/b.py:C") and names_code("pkg.envs:make") and names_code("pkg:Id-v0")
    assert not any(
        map(names_code, ("pong", "probe:catch", "maze:1", "constant:2", "ALE/Pong-v5", ":x", "x:"))
    )
    assert short_name("/home/me/b.py:C") == "b.py:C"
    assert short_name("ALE/Pong-v5") == "ALE/Pong-v5"


def test_neighbours_hide_none_of_ours_and_ours_none_of_them(folder: Path) -> None:
    import envs as ours

    env = import_code(f"{folder}/my_env.py:Corridor").thing()
    assert (env.size, env.name) == (4, "mine")
    env.reset()
    assert env.step(1)[0]["place"] == 1, "an import while it runs finds the user's folder too"
    assert sys.modules["envs"] is ours and not hasattr(ours, "SIZE")


def test_a_changed_file_is_imported_again(folder: Path) -> None:
    name = f"{folder}/my_env.py:Corridor"
    first = import_code(name)
    assert import_code(name) is first
    (folder / "my_env.py").write_text(CORRIDOR.replace("Go right", "Run right"))
    second = import_code(name)
    assert second.sha256 != first.sha256 and "Run" in second.thing.__doc__
    assert imported_code("my_env.py:Corridor") is second


def test_a_file_with_agent_and_environment_runs_once(tmp_path: Path) -> None:
    once = f"open({str(tmp_path / 'ran')!r}, 'a').write('x')"
    (tmp_path / "both.py").write_text(f"{once}\nclass A: ...\nclass B: ...\n")
    first, second = (import_code(f"{tmp_path}/both.py:{name}") for name in "AB")
    assert first.module is second.module and first.thing is not second.thing
    assert (tmp_path / "ran").read_text() == "x"


def test_an_agent_learns_from_a_replay_or_from_rollouts(tmp_path: Path) -> None:
    """One that derives from neither would wait for ever for what its actors send."""
    (tmp_path / "mine.py").write_text("from agents.base import Agent\n\n\nclass Neither(Agent): ...\n")
    import_code(f"{tmp_path}/mine.py:Neither")
    with pytest.raises(AgentError, match="derives from ReplayAgent or RolloutAgent"):
        agent_type("mine.py:Neither")


def test_a_name_that_was_not_given_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stranger.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EnvError):
        canonical_game("stranger:Env-v0")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("{}/none.py:Corridor", "There is no file .*none.py"),
        ("{}/my_env:Corridor", "names neither a file .path/to/my_env.py:MyEnv. nor a module"),
        ("{}/my_env.py:Corridors", "has nothing that is called Corridors"),
        ("{}/my_env.py:not_one", "makes a int, but must make a gymnasium.Env"),
        ("{}/my_env.py:envs", "is a module, but must be a class or function"),
        (
            "{}/broken.py:Env",
            r"cannot be imported: ZeroDivisionError: division by zero \(broken.py, line 2\)",
        ),
        ("{}/quits.py:Env", r"cannot be imported: SystemExit: 0 \(quits.py, line 1\)"),
        ("{}/my_env.py:quits", r"my_env.py:quits could not be built: SystemExit: 0 \(my_env.py, line \d+\)"),
        (
            "{}/my_env.py:inverts",
            r"my_env.py:inverts could not be built: LinAlgError: Singular matrix \(my_env.py, line \d+\)",
        ),
        ("no_such_package.envs:make", "No module named 'no_such_package'"),
    ],
)
def test_a_mistake_is_one_sentence(folder: Path, name: str, sentence: str) -> None:
    (folder / "broken.py").write_text("x = 1\nx / 0\n")
    (folder / "quits.py").write_text("raise SystemExit(0)\n")
    from envs.config import EnvError
    from wiring.setting import setting_of

    with pytest.raises((UserError, EnvError), match=sentence):
        setting_of(canonical(read_args(["--game", name.format(folder)])))


def test_the_check_runs_in_a_users_folder(folder: Path) -> None:
    """Where a module of theirs can be named too, which is nowhere else to be found."""
    said = run(folder, "envs/check.py", "my_env:Corridor")
    assert "checker       passed" in said
    assert said.splitlines()[-1].endswith("specs/classic/cartpole_dqn.yaml --game my_env:Corridor")


def test_files_and_runs_are_called_without_the_folder(folder: Path) -> None:
    args = read_args(["--game", f"{folder}/my_env.py:Corridor"])
    for each in (args, canonical(args)):
        assert (each.run_name, each.file_name) == ("my_env.py:Corridor", "my_env_Corridor")


def test_a_page_names_the_file_so_that_it_is_found_from_any_folder(folder: Path) -> None:
    """In the command with which the run goes on."""
    setting = setting_of_run(canonical(read_args(["--game", f"{folder / 'my_env.py'}:Corridor"])))
    words = shlex.split(run_facts(setting).command)
    assert words[words.index("--game") + 1] == f"{folder / 'my_env.py'}:Corridor"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["my_env.py:Corridor", "my_env.py:Corridor-v0", "my_env:Corridor"])
def test_all_programs_play_it(folder: Path, redis_socket: str, client: Client, name: str) -> None:
    """Redis, learner and actor of one command; then the evaluation, which needs the same name again."""
    where = ["--host-redis", redis_socket, "--path-to-results", "out", "--run", "corridor"]
    arguments = [] if name.endswith("v0") else ["--env-args", '{"size":3}']
    game = ["--game", name, *arguments]
    run(folder, "start_learning.py", *game, *SMALL, *where, "--T-max", 800)
    (model,) = (folder / "out").glob("last_model_my_env_Corridor*.pth")
    evaluation = ["--model", model, "--path-to-results", "out", "--evaluation-episodes", 3]
    said = run(folder, "test_multiple_seed.py", *game, *evaluation)
    assert f"{name}: 3 episodes" in said
    said = run(folder, "test_multiple_seed.py", *evaluation, code=2)
    assert "code is run only where it is asked for: add --game" in said and name in said
    if arguments:
        said = run(folder, "test_multiple_seed.py", "--game", name, *evaluation, code=2)
        assert """give --env-args '{"size": 3}'.""" in said
    settings = json.loads(client.get(Keys("corridor").settings) or b"")["settings"]
    assert settings["game"] == name and len(settings[f"code:{name}"]) == 64


@pytest.mark.slow
def test_a_run_goes_on_with_the_same_code_alone(folder: Path, redis_socket: str, client: Client) -> None:
    words = ["--game", "my_env.py:Corridor", *SMALL, "--serial", "--host-redis", redis_socket]
    words += ["--path-to-results", "out", "--T-max"]
    run(folder, "launch_learner.py", *words, 300)
    (folder / "my_env.py").write_text(CORRIDOR.replace("Go right", "Run right"))
    said = run(folder, "launch_learner.py", *words, 400, code=2)
    assert "names another my_env.py:Corridor" in said and "--changed-code" in said
    run(folder, "launch_learner.py", *words, 400, "--changed-code")


@pytest.mark.slow
def test_a_replay_is_filled_from_experience_with_the_same_code_alone(folder: Path, redis_socket: str) -> None:
    alone = "--game my_env.py:Corridor --agent random --no-push --T-max 200 --event-log-out a.events".split()
    run(folder, "launch_actor.py", *alone)
    (folder / "my_env.py").write_text(CORRIDOR.replace("Go right", "Run right"))
    said = run(folder, "launch_actor.py", *alone, code=2)
    assert "a.events was recorded from another my_env.py:Corridor" in said
    words = ["--game", "my_env.py:Corridor", *SMALL, "--serial", "--host-redis", redis_socket]
    words += ["--path-to-results", "out", "--T-max", "300", "--event-log-in", "a.events"]
    said = run(folder, "launch_learner.py", *words, code=2)
    assert "a.events was recorded from another my_env.py:Corridor" in said and "--changed-code" in said
    said = run(folder, "launch_learner.py", *words, "--changed-code")
    assert "The replay begins with 200 transitions from a.events." in said


SIMULATOR = """
import multiprocessing
import sizes


def serve(pipe):
    pipe.send(sizes.SIZE)


class Env:
    def __init__(self, method):
        context = multiprocessing.get_context(method)
        self.pipe, other = context.Pipe()
        self.simulator = context.Process(target=serve, args=(other,))
        self.simulator.start()
        other.close()
"""
PROGRAM = """
import sys
from own_code.code import import_code

if __name__ == "__main__":
    env = import_code(sys.argv[1]).thing(sys.argv[2])
    print(env.pipe.recv())
    env.simulator.join()
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_code_of_ones_own_starts_processes_that_find_it(method: str, tmp_path: Path) -> None:
    """As OpenGL and CUDA want it, for a simulator beside."""
    (tmp_path / "own").mkdir()
    files = {"own/my_env.py": SIMULATOR, "own/sizes.py": "SIZE = 7", "program.py": PROGRAM}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "program.py", "own/my_env.py:Env", method]
    environment = {**ONE_THREAD, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "7\n", ended.stderr


FLAGS_OF_ITS_OWN = """
from __future__ import annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Config:
    {field}


class Agent:
    config_type = Config
"""


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (
            "place: Path = 'here'",
            "A type in .*agent.py:Agent's config cannot be looked up: NameError: name 'Path'",
        ),
        ("select: str = 'max'", "The field select of .*agent.py:Agent's config needs another name"),
        ("file_name: str = 'a'", "The field file_name of .* needs another name"),
        ("help: int = 3", "The field help of .* needs another name"),
    ],
)
def test_a_field_that_can_be_no_flag_is_one_sentence(field: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(FLAGS_OF_ITS_OWN.format(field=field))
    with pytest.raises(UserError, match=sentence):
        read_args(["--agent", f"{tmp_path}/agent.py:Agent"])


HOSTILE = (
    "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\nclass Env:\n    config_type = 5\n"
)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """A module that could be imported, from everywhere, in the tests' own process too; whether it was."""
    (tmp_path / "hostile.py").write_text(HOSTILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(tmp_path))
    return (tmp_path / "hostile.ran").exists


def _run_hostile(folder: Path, program: str, *words: object) -> str:
    named = [str(ROOT / program)] if program.endswith(".py") else ["-m", program]
    command = [sys.executable, *named, *map(str, words)]
    environment = {**ONE_THREAD, "PYTHONPATH": f"{folder}:{ROOT}"}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


NAMES = ("hostile:Env", "hostile:Env-v0", "{}/hostile.py:Env")
QUICK = {("hostile:Env", "game"), ("{}/hostile.py:Env", "agent")}
"""Each kind of name and each flag once; the other pairs are marked slow."""
hostile_names = pytest.mark.parametrize(
    ("name", "flag"),
    [
        pytest.param(name, flag, marks=() if (name, flag) in QUICK else pytest.mark.slow)
        for name in NAMES
        for flag in ("game", "agent")
    ],
)


@hostile_names
def test_what_redis_names_is_not_run(
    flag: str, name: str, hostile: Callable[[], bool], tmp_path: Path, redis_socket: str, client: Client
) -> None:
    name, keys = name.format(tmp_path), Keys("hostile")
    settings: dict[str, Any] = {**read_args(["--game", "CartPole-v1", "--agent", "dqn"]).shared(), flag: name}
    info = {"settings": settings, "fresh_since": 1, "learner": "t", "began": 1, "chunk_format": 3}
    client.set(keys.settings, json.dumps(info))
    client.set(keys.learner_lease, "t")
    client.hset(keys.counters, "epoch", 1)
    said = _run_hostile(tmp_path, "launch_actor.py", "--run", "hostile", "--host-redis", redis_socket)
    assert f"add --{flag} " in said and name in said
    assert not hostile()


@hostile_names
def test_what_a_snapshot_names_is_not_run(
    flag: str, name: str, hostile: Callable[[], bool], tmp_path: Path
) -> None:
    name = name.format(tmp_path)
    settings = {**read_args(["--game", "CartPole-v1", "--agent", "dqn"]).shared(), flag: name, "run": "x"}
    clocks = {"updates": 1, "t_learner": 1, "t_actors": 1}
    snapshot = {"format": 1, "settings": settings, "acting_weights": {}, "config": settings, **clocks}
    torch.save(snapshot, tmp_path / "last_model_hostile_1.pth")
    model = ["--model", "last_model_hostile_1.pth"]
    for program in ("test_multiple_seed.py", "wiring.advantage_surface"):
        said = _run_hostile(tmp_path, program, *model)
        assert f"--{flag} " in said and name in said
    if flag == "game":
        alone = ["--no-push", "--ckpt-dir", ".", "--game", "CartPole-v1", "--agent", "dqn"]
        assert "CartPole" in _run_hostile(tmp_path, "launch_actor.py", *alone)
    assert not hostile()


def test_the_hostile_module_runs_where_it_is_asked_for(hostile: Callable[[], bool], tmp_path: Path) -> None:
    """The test above would see it."""
    _run_hostile(tmp_path, "test_multiple_seed.py", "--game", "hostile:Env", "--agent", "random")
    assert hostile()
