"""The tutorials as a user would have them: their files in a folder outside, their commands, cut short."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from args import UserError, parse_args, read_args
from memory.runs.keys import Keys
from memory.server.connection import Client
from tests.processes import ONE_THREAD, ROOT

TUTORIALS = {"tutorials/own_agent": "my_agent.py", "tutorials/own_network": "my_network.py"}
PAGES = {**TUTORIALS, "own_environment": "my_env.py"}
CUT = {"--T-max": "1500", "--learn-start": "200", "--memory-capacity": "2000"}
LINES = 100


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / "docs" / f"{name}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def save(name: str, folder: Path) -> Path:
    (code,) = blocks(name, "python")
    file = folder / PAGES[name]
    file.write_text(code)
    return file


def commands(name: str) -> list[list[str]]:
    return [
        shlex.split(line)
        for block in blocks(name, "bash")
        for line in block.replace("\\\n", " ").splitlines()
    ]


def type_in(folder: Path, words: list[str], *more: str, code: int = 0) -> str:
    """A command of a tutorial; the shell script's work is start_learning.py's, once packages are there."""
    program = words[1].removeprefix("~/rainbow/").replace("start_learning_atari.sh", "start_learning.py")
    for flag, value in CUT.items():
        if flag in words:
            words[words.index(flag) + 1] = value
    environment = {name: value for name, value in ONE_THREAD.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, str(ROOT / program), *words[2:], *more],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = ended.stdout + ended.stderr
    assert ended.returncode == code, said
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("name", TUTORIALS)
def test_the_file_is_short(name: str) -> None:
    (code,) = blocks(name, "python")
    assert len(code.splitlines()) <= LINES


@pytest.mark.slow
@pytest.mark.parametrize("name", TUTORIALS)
def test_all_programs_run_it(name: str, tmp_path: Path, redis_socket: str, client: Client) -> None:
    save(name, tmp_path)
    learn, *evaluate = commands(name)
    server = ["--host-redis", redis_socket]
    type_in(tmp_path, learn, *server)
    (model,) = (tmp_path / "results").glob("last_model_CartPole-v1_*.pth")
    for words in evaluate:
        words[words.index("--model") + 1] = str(model)
        assert "CartPole-v1: 3 episodes" in type_in(tmp_path, words, "--evaluation-episodes", "3")
    alone = ["python", "launch_actor.py", "--run", "CartPole-v1"]
    info = client.get(Keys("CartPole-v1").settings)
    assert info is not None and b"code:my_" in info
    client.set(Keys("CartPole-v1").learner_lease, info.partition(b'"learner": "')[2].partition(b'"')[0])
    said = type_in(tmp_path, alone, *server, code=2)
    assert f"add --agent path/to/{TUTORIALS[name]}:" in said


@pytest.mark.slow
def test_a_picture_beside_numbers_is_learned_from(tmp_path: Path, redis_socket: str) -> None:
    """With nothing said but the environment and the agent. Random play scores -1.5; the best is about 0.9.

    This run of 25,000 steps has 0.90, in turns so that it repeats.
    """
    save("own_environment", tmp_path)
    check, learn, evaluate = commands("own_environment")
    assert "MyEnv" in type_in(tmp_path, check)
    said = type_in(tmp_path, learn, "--T-max", "25000", "--serial", "--host-redis", redis_socket)
    assert "What is not given comes from specs/classic/cartpole_dqn.yaml" in said
    (model,) = (tmp_path / "results").glob("last_model_my_env_MyEnv_*.pth")
    evaluate[evaluate.index("--model") + 1] = str(model)
    said = type_in(tmp_path, evaluate, "--evaluation-episodes", "50")
    score = re.search(r"whole episode +(\S+)", said)
    assert score is not None and float(score[1]) > 0.5, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "own", "game"),
    [
        (
            "own_environment",
            "agent: dqn\ngame: my_env.py:MyEnv\nenv-args: '{\"size\": 5}'\n",
            "my_env_MyEnv",
        ),
        ("tutorials/own_agent", "agent: my_agent.py:QrDqn\ngame: CartPole-v1\nquantiles: 8\n", "CartPole-v1"),
    ],
)
def test_the_lab_runs_it(name: str, own: str, game: str, tmp_path: Path) -> None:
    """Its evaluation and its film, too, which are given the user's code and arguments again."""
    save(name, tmp_path)
    spec = f"# of a user's own, cut short\n{own}hidden-size: 16\n"
    spec += "memory-capacity: 2000\nlearn-start: 200\nT-max: 800\nserial: true\nthreads: 1\n"
    (tmp_path / "own.yaml").write_text(spec)
    type_in(tmp_path, ["python", "run_lab.py", "benchmark", "own.yaml"], "--results", "lab")
    (session,) = (tmp_path / "lab").rglob("session_0")
    assert list(session.glob(f"last_model_{game}_8*.pth"))
    assert list(session.glob("evaluation_*.json"))
    type_in(tmp_path, ["python", "run_lab.py", "run", "own.yaml", "own", "enjoy"], "--results", "lab/runs")
    assert list((session / "enjoy").glob("evaluation_*.json"))


def test_fields_of_the_config_are_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = save("tutorials/own_agent", tmp_path)
    agent = ["--agent", f"{file}:QrDqn"]
    args = read_args([*agent, "--quantiles", "8"])
    assert getattr(args, "quantiles") == 8  # noqa: B009  Args itself has no such field
    assert args.lr == 1e-3, "its own default"
    assert args.shared()["quantiles"] == 8, "actors adopt it"
    assert read_args(["--lr", "0.5", *agent]).lr == 0.5
    assert read_args([]).lr == 5e-5, "other agents keep theirs"
    with pytest.raises(UserError, match="--quantiles got 'many'"):
        read_args([*agent, "--quantiles", "many"])
    with pytest.raises(UserError, match="There is no flag --quantiles"):
        read_args(["--quantiles", "8"])
    spec = tmp_path / "qr.yaml"
    spec.write_text(f"agent: {file}:QrDqn\nquantiles: 4\n")
    assert getattr(read_args(["--spec", str(spec)]), "quantiles") == 4  # noqa: B009
    with pytest.raises(SystemExit):
        parse_args([*agent, "--help"])
    assert "--quantiles INT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("config_type = None", "needs a config_type"),
        ("@dataclass\n    class config_type:\n        size: int", "The field size of .* needs a default"),
        ("@dataclass\n    class config_type:\n        size: list = None", "needs bool, int, float or str"),
    ],
)
def test_a_config_that_is_none_is_refused(tmp_path: Path, config: str, sentence: str) -> None:
    (tmp_path / "bad.py").write_text(f"from dataclasses import dataclass\nclass Bad:\n    {config}\n")
    with pytest.raises(UserError, match=sentence):
        read_args(["--agent", f"{tmp_path}/bad.py:Bad"])
