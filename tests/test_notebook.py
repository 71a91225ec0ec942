"""The package that users import: from scripts of theirs, beside modules that are called as ours."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from args import read_args
from memory.runs.keys import Keys
from memory.server.connection import Client
from rainbow_iqn_apex import read_run, train
from tests.processes import ONE_THREAD, ROOT
from tests.test_own_code import CORRIDOR

BEGIN = f"""
import sys
sys.path.append({str(ROOT)!r})  # at the end: what `pip install -e .` makes importable
import envs, models
import rainbow_iqn_apex as apex
import agents.helper
assert (envs.SIZE, models.NAME, agents.helper.way(1)) == (4, "mine", 1), "ours hide none of the user's"
assert "rainbow_iqn_apex.envs.registry" in sys.modules and not hasattr(envs, "registry")
"""
TRAIN = """
SMALL = dict(hidden_size=16, memory_capacity=2000, learn_start=64, batch_size=8, target_update=50, lr=0.001)
lines = []
tables = apex.train("my_env.py:Corridor", "dqn", "out", lines.append, T_max=600, run="mine", threads=1,
                    env_args={"size": 3}, log_interval=100, host_redis=sys.argv[1], **SMALL)
assert any("Saved" in line for line in lines), lines
assert len(tables.episodes["score_saber_points"]) >= 10
assert max(tables.episodes["score_saber_points"]) == 1.0
assert len(tables.learning["loss"]) > 0 if "loss" in tables.learning else len(tables.learning) > 0
"""
PLAY = """
import glob
(path,) = glob.glob("out/last_model_*.pth")
try:
    apex.load_policy(path)
except ValueError as error:
    assert 'add game="path/to/my_env.py:Corridor".' in str(error), error
else:
    raise SystemExit("a snapshot's code was run without being asked for")
policy = apex.load_policy(path, game="my_env.py:Corridor", env_args={"size": 3})
import importlib.util
spec = importlib.util.spec_from_file_location("theirs", "my_env.py")
theirs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(theirs)
env = theirs.Corridor(3)
observation, _ = env.reset(seed=1)
for _ in range(5):
    action = policy(observation)
    assert action in (0, 1) and type(action) is int
    observation, *_ = env.step(action)
for wrong in (None, [1, 2, 3], {"place": 1}):
    try:
        policy(wrong)
    except ValueError as error:
        assert "This is no observation of my_env.py:Corridor: " in str(error), error
    else:
        raise SystemExit(f"{wrong} was taken for an observation")
policy.reset()
look = policy.look(observation)
assert look.values.shape == (2,) and look.quantiles.shape == (1, 2)
assert look.action == look.values.argmax()
assert policy.play(3).shape == (3,)
"""
REPLAY = """
replay = apex.open_replay("mine", sys.argv[1])
assert len(replay) > 500 and (replay.priorities > 0).all()
batch = replay.sample(8)
assert batch.s_tm1.shape == batch.s_t.shape == (8, 1, 3)
assert set(batch.a_tm1) <= {0, 1} and batch.priority.shape == (8,)
try:
    apex.open_replay("none", sys.argv[1])
except ValueError as error:
    assert str(error) == "Redis holds no run 'none'."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents").mkdir()
    (tmp_path / "my_env.py").write_text(CORRIDOR)
    (tmp_path / "envs.py").write_text("SIZE = 4\n")
    (tmp_path / "models.py").write_text("NAME = 'mine'\n")
    (tmp_path / "agents" / "__init__.py").touch()
    (tmp_path / "agents" / "helper.py").write_text("def way(action):\n    return 1 if action else -1\n")
    return tmp_path


def environment() -> dict[str, str]:
    return {name: value for name, value in ONE_THREAD.items() if name != "PYTHONPATH"}


def run(folder: Path, script: str, *words: str, code: int = 0) -> str:
    (folder / "script.py").write_text(script)
    command = [sys.executable, "script.py", *words]
    ended = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=400
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.slow
def test_a_run_is_trained_played_and_looked_into(folder: Path, redis_socket: str, client: Client) -> None:
    """All from one script, beside modules that are called as ours."""
    run(folder, BEGIN + TRAIN + PLAY + REPLAY, redis_socket)
    held = {key: client.dump(key) for key in client.keys(f"{{{Keys('mine').run}:*")}
    run(folder, BEGIN + REPLAY, redis_socket)
    assert held and {key: client.dump(key) for key in held} == held, "looking changes nothing"


@pytest.mark.slow
def test_the_folder_may_be_named_as_the_flag_is(folder: Path, redis_socket: str) -> None:
    said = run(
        folder,
        BEGIN
        + "tables = apex.train('CartPole-v1', 'reinforce', path_to_results='there', T_max=200, serial=True,"
        " model=None, log_interval=100, host_redis=sys.argv[1])\nprint(tables)",
        redis_socket,
    )
    assert said.splitlines()[-1].startswith("<CartPole-v1: ")


@pytest.mark.slow
def test_an_interrupted_call_leaves_no_process(folder: Path, redis_socket: str) -> None:
    script = BEGIN + TRAIN.replace("T_max=600", "T_max=10_000_000").replace("lines.append", "print")
    (folder / "script.py").write_text(script)
    with subprocess.Popen(
        [sys.executable, "-u", "script.py", redis_socket],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Judging by" in line:  # the learner learns
                break
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in said
    assert list((folder / "out").glob("last_model_*.pth"))
    deadline = time.monotonic() + 10
    while (left := _processes_in(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def _processes_in(folder: Path) -> list[str]:
    """Those that stand in that folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if place.readlink() == folder:
                found.append(place.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("game", ["my_env.py:Corridor", "some/my_env.py:Corridor", "my_env_Corridor"])
def test_a_run_is_read_by_the_name_of_its_game_or_of_its_files(game: str, tmp_path: Path) -> None:
    for name in ("pong", "my_env_Corridor"):
        (tmp_path / f"run_{name}.json").write_text('{"seed": 5}')
    tables = read_run(tmp_path, game)
    assert (tables.game, tables.settings) == ("my_env_Corridor", {"seed": 5})
    assert repr(tables) == "<my_env_Corridor: 0 episodes, 0 rows of learning>", "settings fill a screen"
    there = "pass one of my_env_Corridor, pong as game"
    with pytest.raises(ValueError, match=f"holds several runs: {there}"):
        read_run(tmp_path)
    with pytest.raises(ValueError, match=f"holds no run of breakout: {there}"):
        read_run(tmp_path, "breakout")
    with pytest.raises(ValueError, match="holds no run"):
        read_run(tmp_path / "nothing", game)


def test_the_agent_is_that_of_a_spec_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = list[list[str]]()
    monkeypatch.setattr("rainbow_iqn_apex.runs._run_to_end", lambda words, _: commands.append(words))
    (tmp_path / "run_probe_catch.json").write_text("{}")
    spec = tmp_path / "some.yaml"
    spec.write_text("# Mnih et al. 2015\nagent: dqn\n")
    train("probe:catch", results=tmp_path, spec=str(spec))
    train("probe:catch", "iqn", tmp_path, spec=str(spec))
    assert ["--agent" in words for words in commands] == [False, True]


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("lr=-1", "--lr got -1: input should be greater than 0."),
        ("learn_strat=1", "There is no flag --learn-strat; did you mean --learn-start?"),
    ],
)
def test_a_wrong_flag_is_a_sentence_at_once(flag: str, sentence: str, folder: Path) -> None:
    said = run(folder, f"{BEGIN}apex.train('CartPole-v1', {flag})", code=1)
    assert said.splitlines()[-1].endswith(f"UserError: {sentence}")


@pytest.mark.slow
def test_what_a_snapshot_or_redis_names_is_not_run(folder: Path, redis_socket: str, client: Client) -> None:
    """A module that could be imported, with a side effect; then it is asked for, and runs."""
    (folder / "hostile.py").write_text("open('ran', 'w').close()\nclass Env: pass\n")
    settings = {**read_args(["--agent", "dqn"]).shared(), "game": "hostile:Env"}
    counts = {"updates": 1, "t_learner": 1, "t_actors": 1}
    snapshot = {"format": 1, "settings": settings, "acting_weights": {}, "config": settings, **counts}
    torch.save(snapshot, folder / "last_model_hostile_1.pth")
    info = {"settings": settings, "fresh_since": 1, "learner": "t", "began": 1, "chunk_format": 3}
    client.set(Keys("hostile").settings, json.dumps(info))
    tried = "try:\n    apex.{}\nexcept ValueError as error:\n    print(error)\n"
    calls = ("load_policy('last_model_hostile_1.pth')", "open_replay('hostile', sys.argv[1]).sample()")
    said = run(folder, BEGIN + "".join(map(tried.format, calls)), redis_socket)
    assert 'add game="hostile:Env".' in said and "The replay of run 'hostile' is empty." in said
    assert not (folder / "ran").exists()
    given = tried.format("load_policy('last_model_hostile_1.pth', game='hostile:Env')")
    run(folder, BEGIN + given, redis_socket)
    assert (folder / "ran").exists()
