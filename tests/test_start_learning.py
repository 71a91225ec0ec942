"""One terminal: what start_learning.py plans, and a whole small run through it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from args import UserError, parse_args, read_args
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client, RedisConfig, make_client
from rainbow_iqn_apex import open_replay
from reporting.model_files import steps_in
from supervision.redis_server import RedisServer
from tests.processes import ONE_THREAD
from wiring.starting.game_specs import with_spec
from wiring.starting.local_plan import LocalPlan, learner_threads
from wiring.starting.run_plan import SnapshotFile, check_parts, snapshots_of

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "redis_conf" / "redis_rainbow_6379.conf"
SMALL = (
    "--game probe:catch --memory-capacity 2000 --learn-start 64 --log-interval 100 --hidden-size 16 "
    "--batch-size 8 --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4"
)
OWN = """
from gymnasium import Env
from gymnasium.spaces import Box, Dict, Discrete


class Vector(Env):
    observation_space, action_space = Dict(look=Box(0, 255, (6, 5, 3), "uint8"), n=Discrete(2)), Discrete(3)


class Image(Env):
    observation_space, action_space = Box(0, 255, (60, 50, 3), "uint8"), Discrete(3)
"""


def plan(*argv: str, cores: int = 2, earlier: frozenset[SnapshotFile] = frozenset()) -> LocalPlan:
    return LocalPlan(parse_args(argv), argv, earlier, cores, argv)


def test_a_run_whose_counters_are_damaged_is_not_finished(redis_socket: str, client: Client) -> None:
    """Processes end with a sentence on them; the launcher, which asks then, ended with a traceback."""
    known = plan("--game", "probe:catch", "--host-redis", redis_socket)
    client.hset(Keys("probe:catch").counters, "finished", 1)
    assert known.is_finished("learner")
    client.hset(Keys("probe:catch").counters, "steps", "many")
    assert not known.is_finished("learner")


def command(folder: Path, *argv: str) -> list[str]:
    where = ["--host-redis", str(folder / "redis.sock"), "--path-to-results", str(folder)]
    return [sys.executable, str(ROOT / "start_learning.py"), *SMALL.split(), *where, *argv]


def start(folder: Path, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(folder, *argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ONE_THREAD
    )


def test_every_process_gets_the_arguments_its_number_and_its_gpu() -> None:
    planned = plan("--game", "pong", "--nb-actor", "2", "--gpu-numbers", "3,0,1")
    learner, actors = planned.learner(), planned.actors()
    assert list(learner.command())[1:] == [
        str(ROOT / "launch_learner.py"),
        *planned.argv,
        "--gpu-number",
        "3",
    ]
    assert list(actors[1].command())[-4:] == ["--id-actor", "1", "--gpu-number", "1"]
    assert [child.log.name for child in (learner, *actors)] == [
        "pong_learner.log",
        "pong_actor_0.log",
        "pong_actor_1.log",
    ]


def test_another_program_at_the_servers_port_says_nothing_of_a_run() -> None:
    """Ray listens at Redis' port, where it is given no other."""

    def answer() -> None:
        with listener.accept()[0] as line:
            line.sendall(b"\0")
            line.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as other:
        other.submit(answer)
        words = "--host-redis", "127.0.0.1", "--port-redis", str(listener.getsockname()[1])
        assert plan(*words).read(read_counters) is None


def test_a_serial_run_is_one_process() -> None:
    assert plan("--serial").actors() == []


def test_a_learner_that_was_started_from_a_model_goes_on_from_its_own_snapshot(tmp_path: Path) -> None:
    argv = ("--game", "pong", "--model", "given.pth", "--path-to-results", str(tmp_path))
    snapshot = tmp_path / "last_model_pong_100.pth"
    snapshot.touch()
    learner = plan(*argv, earlier=snapshots_of(tmp_path, "pong")).learner()
    assert parse_args(list(learner.command())[2:]).model == "given.pth", "the snapshot is of an older run"
    learner = plan(*argv, earlier=frozenset()).learner()
    assert not parse_args(list(learner.command())[2:]).model


@pytest.mark.parametrize(
    ("cores", "actors", "synchronised", "threads"),
    [(2, 1, True, 2), (2, 1, False, 1), (1, 4, False, 1), (16, 4, False, 12), (8, 100, False, 4)],
)
def test_cores_are_shared_out(cores: int, actors: int, synchronised: bool, threads: int) -> None:
    assert learner_threads(cores, actors, synchronised) == threads


def test_the_users_own_number_of_threads_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert plan(cores=2).learner().environment["OMP_NUM_THREADS"] == "2"
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert "OMP_NUM_THREADS" not in plan(cores=2).learner().environment


def test_sigterm_saves_and_stops(tmp_path: Path) -> None:
    run = start(tmp_path)
    assert run.stdout is not None
    for line in run.stdout:
        if "for learner" in line:
            break
    run.send_signal(signal.SIGTERM)
    words, _ = run.communicate(timeout=120)
    assert run.returncode == 0, words
    assert list(tmp_path.glob("last_model_probe_catch_*.pth"))
    assert not (tmp_path / "redis.sock").exists()


def _until_t(run: subprocess.Popen[str], folder: Path, steps: int) -> None:
    """Until the learner has saved at T_actors = `steps` or later."""
    deadline = time.monotonic() + 300
    while steps_in(folder) < steps:
        if run.poll() is not None or time.monotonic() > deadline:
            run.terminate()
            pytest.fail(run.communicate(timeout=120)[0])
        time.sleep(0.1)


def _held(folder: Path) -> tuple[int, int]:
    """T_actors, and transitions with a priority, in the replay that was kept."""
    socket = str(folder / "look.sock")
    copy = shutil.copy(folder / "replay_probe_catch.rdb", folder / "look.rdb")
    server = RedisServer(RedisConfig(socket, 0), CONF, folder / "look.log", Path(copy))
    server.ensure()
    replay = open_replay("probe:catch", host=socket)
    with closing(make_client(RedisConfig(socket, 0))) as client:
        steps = read_counters(client, Keys("probe:catch")).steps
    held = len(replay)
    server.stop()
    return steps, held


@pytest.mark.slow
def test_ctrl_c_and_the_same_command_go_on_with_every_transition(tmp_path: Path) -> None:
    words = "--learn-start 400 --evaluation-interval 200 --memory-capacity 50000 --T-max 100000".split()
    steps = 0
    for again in (False, True):
        goal = steps + 600  # a busy machine may take the first run beyond its own
        run = start(tmp_path, *words)
        _until_t(run, tmp_path, goal)
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=120)
        assert run.returncode == 0, said
        assert f"The replay stays in {tmp_path}/replay_probe_catch.rdb" in said
        assert ("The replay is there again" in said) == again
        assert re.search(r"Go on      \S*python\S* start_learning.py --game probe:catch", said)
        steps, held = _held(tmp_path)
        assert steps >= goal and steps == held, "each step is a transition"
    log = (tmp_path / "logs" / "probe_catch_learner.log").read_text()
    assert log.count("begins with an empty replay") == 1
    assert "refill" not in log and steps_in(tmp_path) == steps


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("", "results/replay_probe_catch.rdb"),
        ("--save-replay", None),
        ("--save-replay False", None),
        ("--redis-conf redis_conf/redis_rdb.conf", None),
    ],
)
def test_who_keeps_the_replay_of_a_server_that_was_started_here(words: str, kept: str | None) -> None:
    assert plan("--game", "probe:catch", *words.split()).kept == (kept and Path(kept))


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (("--nb-actor", "2", "--gpu-numbers", "0,1"), "--gpu-numbers must name 3 GPUs"),
        (("--redis-conf", "none.conf"), "There is no Redis configuration"),
        (("--path-to-results", "/proc/nothing"), "Nothing can be written to /proc/nothing (No such file"),
        (("--game", "no_such_game"), "no_such_game"),
        (("--agent", "no_such_agent"), "There is no agent 'no_such_agent': choose one of iqn, rainbow"),
        (("--model", "none.pth"), "--model: there is no snapshot none.pth."),
        (("--learners", "2", "--batch-size", "9"), "--batch-size 9 is no multiple of the 2 learners"),
        (("--seat-runs", "left,right"), "--seat-runs needs a learner for each of its runs"),
        (("--shards", "2"), "--shards 2 needs --nb-actor 2 or more"),
        (("--redis-password-file", "none"), "--redis-password-file none cannot be read: No such file"),
        (
            ("--game", "pettingzoo:pong_v3", "--agent", "dqn", "--envs-per-actor", "3"),
            "--envs-per-actor must be a multiple of 2, not 3.",
        ),
        pytest.param(
            ("--game", "pettingzoo:knights_archers_zombies_v11", "--agent", "dqn", "--envs-per-actor", "4"),
            "A seat of pettingzoo:knights_archers_zombies_v11 is out before the others",
            marks=pytest.mark.slow,
        ),
        (("--agent", "naf"), "This agent needs continuous actions, and this environment's are discrete"),
    ],
)
def test_a_users_mistake_is_one_sentence_and_exit_code_2(
    tmp_path: Path, mistake: tuple[str, ...], sentence: str
) -> None:
    run = start(tmp_path, *mistake)
    words, _ = run.communicate(timeout=120)
    assert run.returncode == 2, words
    assert words.count(sentence) == 1
    assert "Traceback" not in words
    early = {"--game", "--agent", "--model", "--learners", "--shards"} & {*mistake}
    assert not (early and (tmp_path / "logs").exists()), "it is said before processes start"


def test_a_mistake_that_a_process_finds_is_said_on_standard_error_alone(tmp_path: Path) -> None:
    argv = command(tmp_path, "--learn-start", "1")
    run = subprocess.run(argv, capture_output=True, text=True, env=ONE_THREAD, timeout=120)
    sentence = "error: --learn-start 1 is less than one batch of 8."
    assert run.returncode == 2 and run.stderr.count(sentence) == 1, run.stderr
    assert "error: " not in run.stdout


def test_a_whole_run_in_a_terminal(tmp_path: Path) -> None:
    main, terminal = os.openpty()
    environment = {**ONE_THREAD, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    argv = command(tmp_path, "--T-max", "300")
    with subprocess.Popen(argv, stdout=terminal, stderr=terminal, env=environment) as run:
        os.close(terminal)
        shown = b"".join(iter(lambda: _read(main), b"")).decode(errors="replace")
        assert run.wait(timeout=60) == 0, shown
    os.close(main)
    assert "probe:catch · iqn" in shown
    assert "The run is finished." in shown
    last = shown[shown.rindex("finished at step ") :]
    assert "╭" not in last and "learning" not in last, "one panel stays"
    assert f"Results    {tmp_path}/Reward_probe_catch.html" in last
    assert f"Snapshot   {tmp_path}/last_model_probe_catch_" in last and "Evaluate   " in last
    assert "Time between 2 log_interval" not in shown, "those lines are in the log files"
    assert (tmp_path / "Reward_probe_catch.html").exists()
    assert list(tmp_path.glob("last_model_probe_catch_*.pth"))
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {
        f"probe_catch_{name}.log" for name in ("learner", "actor_0", "redis")
    }
    assert not (tmp_path / "redis.sock").exists(), "the server that was started is gone"
    assert not list(tmp_path.glob("*.rdb")), "a run that is finished needs no replay"


@pytest.mark.slow
def test_a_finished_run_stays_as_it_is(tmp_path: Path) -> None:
    """The same command again plays nothing; with a larger --T-max the run goes on."""

    def results(t_max: int) -> tuple[set[str], str]:
        run = start(tmp_path, "--T-max", str(t_max))
        said, _ = run.communicate(timeout=120)
        assert run.returncode == 0 and "The run is finished." in said, said
        table = (tmp_path / "probe_catch.csv").read_text()
        return {path.name for path in tmp_path.glob("last_model_*.pth")}, table

    first = results(300)
    assert results(300) == first
    files, table = results(600)
    assert files != first[0] and table.startswith(first[1]) and len(table) > len(first[1])


@pytest.mark.slow
def test_the_command_that_evaluates_works_where_it_is_shown(tmp_path: Path) -> None:
    """In the terminal of a newcomer, who has not entered .venv."""
    entered = Path(sys.executable).parent
    folders = [each for each in os.environ["PATH"].split(os.pathsep) if Path(each) != entered]
    environment = {**ONE_THREAD, "PATH": os.pathsep.join(folders)}

    def type_in(*words: str) -> str:
        return subprocess.check_output(words, cwd=ROOT, env=environment, text=True, timeout=120)

    said = type_in("bash", "start_learning_atari.sh", *command(tmp_path, "--T-max", "3000")[2:])
    assert " / 3,000 steps: mean score " in said, "there is no terminal"
    shown = re.search(r"^Evaluate +(.*)", said, re.MULTILINE)
    assert shown is not None, said
    assert "whole episode" in type_in(*shlex.split(shown[1]), "--evaluation-episodes", "2")


@pytest.mark.slow
def test_a_run_under_another_name_of_its_game_ends(tmp_path: Path) -> None:
    """Learner, actors and results have the one name that the project gives the game."""
    words = "--game ALE/Pong-v5 --torso data_efficient --T-max 200".split()
    assert subprocess.run(command(tmp_path, *words), env=ONE_THREAD, timeout=120).returncode == 0
    assert list(tmp_path.glob("last_model_pong_*.pth"))


def _read(terminal: int) -> bytes:
    """What the programs wrote; empty once they are gone, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        ("--game CartPole-v1 --agent dqn", "classic/cartpole_dqn.yaml"),
        ("--game CartPole-v1 --agent naf", None),
        ("--game Pendulum-v1 --agent naf", "classic/pendulum_naf.yaml"),
        ("--game HalfCheetah-v5 --agent naf", "classic/halfcheetah_naf.yaml"),
        ("--game LunarLander-v3 --agent dqn", "classic/lunarlander_dqn.yaml"),
        ("--game probe:lock:24 --agent ppo_rnd", "classic/lock_ppo_rnd.yaml"),
        ("--game probe:catch", "classic/catch_iqn.yaml"),
        ("--game maze:2 --agent naf", "maze/naf_cpu.yaml"),
        ("--game minatar:asterix --agent iqn", "minatar/iqn.yaml"),
        ("--game minatar:asterix --agent ppo", None),
        ("--game pong", None),
        ("--game Acrobot-v1 --agent dqn", "classic/cartpole_dqn.yaml"),
        ("--game MountainCarContinuous-v0 --agent naf", "classic/pendulum_naf.yaml"),
        ("--game {folder}/own.py:Vector --agent iqn", "classic/cartpole_iqn.yaml"),
        ("--game {folder}/own.py:Image --agent iqn", None),
    ],
)
def test_what_is_not_given_comes_from_the_spec_of_the_kind_of_game(
    words: str, spec: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The game stays the one asked for; flags override; every process gets the same."""
    (tmp_path / "own.py").write_text(OWN)
    words = words.format(folder=tmp_path)
    given = [*words.split(), "--lr", "0.5"]
    args, argv = with_spec(read_args(given), given)
    expected = [] if spec is None else ["--spec", str(ROOT / "specs" / spec)]
    assert argv == [*expected, *given] and args == read_args(argv) and args.lr == 0.5
    assert args.game == words.split()[1]
    assert (spec in capsys.readouterr().err) if spec else not capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("--game pong", "--spec specs/atari/rainbow_iqn_cpu.yaml is for two CPU cores."),
        ("--game pong --agent ppo_rnd", "--spec specs/atari/rnd_cpu.yaml is for two CPU cores."),
        ("--game pong --agent dqn", "A lower --T-max ends it earlier."),
        ("--game pong --spec specs/atari/rainbow_iqn_cpu.yaml", "A lower --T-max ends it earlier."),
        ("--game CartPole-v1", "A lower --T-max ends it earlier."),
    ],
)
def test_a_run_of_days_is_told_of_the_lighter_spec(words: str, advice: str) -> None:
    said = plan(*words.split()).lighter
    assert said == advice
    assert all((ROOT / word).is_file() for word in said.split() if word.endswith(".yaml"))


def test_an_evaluation_is_told_of_code_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = str(ROOT / "test_multiple_seed.py")  # shorter than from a folder of a test
    monkeypatch.setattr(shutil, "which", lambda name, path: sys.executable)
    assert plan("--game", "pong").evaluation() == ["python", program]
    words = ["--game", "some/my_env.py:MyEnv", "--env-args", '{"size": 5}']
    words += ["--path-to-results", "results/mine"]
    assert plan(*words, "--lr", "1").evaluation() == ["python", program, *words]


def test_an_interpreter_that_is_not_the_terminals_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newcomer has not entered .venv: a plain python lacks the packages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.setattr(shutil, "which", lambda name, path: "/usr/bin/python")
    assert plan("--game", "pong").evaluation()[0] == ".venv/bin/python"


def test_a_spec_that_is_given_is_the_only_one() -> None:
    for own in ("", str(ROOT / "specs" / "classic" / "catch_dqn.yaml")):
        given = ["--game", "probe:catch", "--spec", own]
        assert with_spec(read_args(given), given) == (read_args(given), given)


def test_a_fault_elsewhere_is_not_blamed_on_the_results() -> None:
    error = OSError(8, "Exec format error", "/usr/bin/redis-server")
    assert str(plan().unwritable(error)) == "/usr/bin/redis-server: Exec format error."
    assert "check --path-to-results" in str(plan().unwritable(OSError(28, "No space left on device")))


def test_what_cannot_begin_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wiring.starting.run_plan.find_spec", lambda name: None)
    for words, sentence in ((["--agent", "random"], "does not learn"), (["--page"], "live page needs dash")):
        with pytest.raises(UserError, match=sentence):
            check_parts(read_args(words))
