"""The supervisor over real processes and a real redis-server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from memory.server.connection import RedisConfig, make_client
from supervision.child import Child, ChildSpec
from supervision.redis_server import RedisServer, RedisServerError
from supervision.supervisor import Limits, Output, Supervisor

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "redis_conf" / "redis_rainbow_6379.conf"

WAITS = "import time; time.sleep(60)"
SAVES = (
    "import pathlib, signal, sys, time\n"
    "def save(*_): pathlib.Path(sys.argv[1]).write_text('saved'); sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, save); print('ready'); time.sleep(60)"
)
QUICK = Limits(stop=5.0, hurry=0.2, deaths=3, within=30.0, first_pause=0.05, last_pause=0.1)


class Stage:
    """A folder, a server's address, and what the supervisor said there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = RedisConfig(str(folder / "redis.sock"), 0)
        self.said: list[str] = []
        self.echoed: list[str] = []
        self.finished = True
        self.done: set[str] = set()

    def spec(self, role: str, code: str, *arguments: str) -> ChildSpec:
        command = [sys.executable, "-c", code, *arguments]
        return ChildSpec(role, lambda: command, self.folder / "logs" / f"{role.replace(' ', '_')}.log")

    def server(self) -> RedisServer:
        return RedisServer(self.config, CONF, self.folder / "logs" / "redis.log")

    def supervise(
        self, learner: ChildSpec | None, *actors: ChildSpec, tick: Callable[[], object] = lambda: None
    ) -> int:
        output = Output(self.said.append, self.echoed.append, tick)
        self.redis = self.server()
        return Supervisor(learner, actors, self.redis, self.is_finished, output, QUICK).run()

    def is_finished(self, role: str) -> bool:
        return self.finished or role in self.done

    def words(self) -> str:
        return "\n".join(self.said)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def await_that(condition: Callable[[], bool], limit_s: float = 10.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def pids(stage: Stage, role: str) -> list[int]:
    """Numbers that processes of this role printed, in order of start."""
    log = stage.folder / "logs" / f"{role}.log"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


TELLS = "import os; print(os.getpid(), flush=True); "


def once(condition: Callable[[], object], action: Callable[[], None]) -> Callable[[], None]:
    """A tick that acts the first time that the condition holds."""
    done: list[bool] = []

    def tick() -> None:
        if not done and condition():
            done.append(True)
            action()

    return tick


def interrupt_when(condition: Callable[[], object], number: int = signal.SIGTERM) -> Callable[[], None]:
    """A tick that signals this very process, as a terminal or `kill` would."""
    return once(condition, lambda: os.kill(os.getpid(), number))


def test_a_run_outlives_the_files_of_its_logs(stage: Stage) -> None:
    """Somebody removes them, or rotates them, while it runs."""
    removes = "import os, sys, time; os.unlink(os.readlink('/proc/self/fd/1')); time.sleep(0.5)"
    assert stage.supervise(stage.spec("learner", removes), stage.spec("actor 0", WAITS)) == 0
    assert "The run is finished." in stage.said


def test_a_learner_that_finishes_ends_the_run_and_its_actors(stage: Stage) -> None:
    learner = stage.spec("learner", "import time; print('T = 1 / 1'); time.sleep(0.5)")
    assert stage.supervise(learner, stage.spec("actor 0", TELLS + WAITS)) == 0
    assert "The run is finished." in stage.said
    assert "T = 1 / 1" in stage.echoed
    assert not lives(pids(stage, "actor_0")[0])
    assert not stage.redis.started_here, "the server that was started is stopped again"
    assert not Path(stage.config.host_redis).exists()


def test_an_actor_that_has_done_its_part_is_not_started_again(stage: Stage) -> None:
    """The learner still does the updates it owes, and says only at its own end that the run is over."""
    stage.finished, stage.done = False, {"actor 0"}
    finish = "import pathlib, sys, time; time.sleep(2); pathlib.Path(sys.argv[1]).touch()"
    learner = stage.spec("learner", finish, str(stage.folder / "finished"))

    def look() -> None:
        stage.finished = (stage.folder / "finished").exists()

    assert stage.supervise(learner, stage.spec("actor 0", TELLS), tick=look) == 0
    assert len(pids(stage, "actor_0")) == 1
    assert stage.said == ["The run is finished."]


def test_a_dead_actor_is_started_again(stage: Stage) -> None:
    def started() -> list[int]:
        return pids(stage, "actor_0")

    kill = once(started, lambda: os.kill(started()[0], signal.SIGKILL))
    stop = interrupt_when(lambda: len(started()) == 2)
    actor = stage.spec("actor 0", TELLS + WAITS)
    assert stage.supervise(stage.spec("learner", WAITS), actor, tick=lambda: (kill(), stop())) == 0
    assert "The actor 0 ended (killed by SIGKILL); starting it again" in stage.words()


def test_what_a_dead_actor_had_started_ends_with_it(stage: Stage) -> None:
    """As a simulator would that an environment started, where the actor is killed for its memory."""
    code = (
        "import os, subprocess, sys; started = subprocess.Popen(['sleep', '60'])\n"
        "print(started.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    actor = stage.spec("actor 0", code)
    assert stage.supervise(None, actor) == 1, "it dies too often"
    started = [int(line) for line in actor.log.read_text().split()]
    assert len(started) == QUICK.deaths
    await_that(lambda: not any(map(lives, started)))


def test_what_a_process_leaves_on_purpose_lives_on(stage: Stage) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid)"
    child = Child(stage.spec("learner", code))
    child.start()
    await_that(lambda: child.exit_code == 0)
    (left,) = map(int, child.last_lines(1))
    assert lives(left)
    os.kill(left, signal.SIGKILL)


def test_a_learner_that_was_stopped_by_somebody_else_is_started_again(stage: Stage) -> None:
    stage.finished = False

    again = stage.spec(
        "learner", TELLS + "import pathlib, sys, time; first = pathlib.Path(sys.argv[1])\n"
        "if not first.exists(): first.touch(); sys.exit(0)\n"
        "time.sleep(60)", str(stage.folder / "first"),
    )  # fmt: skip
    assert stage.supervise(again, tick=interrupt_when(lambda: len(pids(stage, "learner")) == 2)) == 0
    assert "The learner ended (exit code 0); starting it again" in stage.words()


def test_a_process_that_dies_again_and_again_ends_the_run(stage: Stage) -> None:
    broken = stage.spec("actor 0", "raise RuntimeError('no such wheel')")
    assert stage.supervise(stage.spec("learner", TELLS + WAITS), broken) == 1
    assert f"The actor 0 died {QUICK.deaths} times in a row; see {broken.log}." in stage.words()
    assert "RuntimeError: no such wheel" in stage.said[-1]
    assert not lives(pids(stage, "learner")[0])


def test_a_users_mistake_ends_the_run_with_its_sentence(stage: Stage) -> None:
    mistaken = stage.spec("actor 0", "import sys; print('error: no such game', file=sys.stderr); sys.exit(2)")
    assert stage.supervise(stage.spec("learner", TELLS + WAITS), mistaken) == 2
    assert stage.said == ["error: no such game"]
    assert not lives(pids(stage, "learner")[0])


def test_a_mistake_that_a_process_has_said_is_not_said_again_at_its_end(stage: Stage) -> None:
    """Its log is read while it ends, and the other processes find the same."""
    says = "import sys, time; print('error: no such game', file=sys.stderr, flush=True); "
    mistaken = [stage.spec(f"actor {number}", says + "time.sleep(1); sys.exit(2)") for number in range(2)]
    assert stage.supervise(stage.spec("learner", says + WAITS), *mistaken) == 2
    assert stage.said == ["error: no such game"] and not stage.echoed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_and_stops_all(stage: Stage, number: int) -> None:
    saved = stage.folder / "snapshot"
    before = signal.getsignal(number)
    code = stage.supervise(
        stage.spec("learner", SAVES, str(saved)), stage.spec("actor 0", TELLS + WAITS),
        tick=interrupt_when(lambda: "ready" in stage.echoed and bool(pids(stage, "actor_0")), number),
    )  # fmt: skip
    assert code == 0
    assert saved.read_text() == "saved"
    assert not lives(pids(stage, "actor_0")[0])
    assert signal.getsignal(number) == before, "handlers are put back"


def test_a_stop_also_works_after_a_process_has_died(stage: Stage) -> None:
    saved = stage.folder / "snapshot"
    code = stage.supervise(
        stage.spec("learner", SAVES, str(saved)), stage.spec("actor 0", "raise RuntimeError"),
        tick=interrupt_when(lambda: "ready" in stage.echoed and bool(stage.said)),
    )  # fmt: skip
    assert code == 0
    assert saved.read_text() == "saved"


def test_a_second_signal_hurries_a_process_that_does_not_stop(stage: Stage) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); " + WAITS
    first = interrupt_when(lambda: "ready" in stage.echoed, signal.SIGINT)
    second = interrupt_when(lambda: any("Stopping" in said for said in stage.said), signal.SIGINT)
    began = time.monotonic()
    assert stage.supervise(stage.spec("learner", deaf), tick=lambda: (second(), first())) == 1
    assert time.monotonic() - began < QUICK.stop
    assert "The learner did not stop in time and is killed." in stage.said
    assert "The learner ended with a fault (killed by SIGKILL)" in stage.words()


def test_the_servers_death_ends_the_run(stage: Stage) -> None:
    kill = once(lambda: True, lambda: os.kill(stage.redis.pid, signal.SIGKILL))
    assert stage.supervise(stage.spec("learner", WAITS), tick=kill) == 1
    assert "The Redis server died" in stage.words()


@pytest.fixture
def running_server(stage: Stage) -> Iterator[subprocess.Popen[bytes]]:
    command = ["redis-server", str(CONF), "--port", "0", "--unixsocket", stage.config.host_redis]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    await_that(Path(stage.config.host_redis).exists)
    yield process
    process.kill()
    process.wait()


def test_a_server_that_ran_before_is_left_running(
    stage: Stage, running_server: subprocess.Popen[bytes]
) -> None:
    client = make_client(stage.config)
    client.set("mine", "1")
    assert stage.supervise(stage.spec("learner", "pass")) == 0
    assert running_server.poll() is None
    assert client.get("mine") == b"1"


def test_nothing_outlives_a_supervisor_that_was_killed(stage: Stage) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from tests.supervision.test_supervisor import Stage, TELLS, WAITS\n"
        "stage = Stage(Path(sys.argv[1]))\n"
        "def tick():\n"
        "    Path(sys.argv[1], 'server').write_text(str(stage.redis.pid))\n"
        "specs = [stage.spec(role, TELLS + WAITS) for role in ('learner', 'actor 0')]\n"
        "stage.supervise(*specs, tick=tick)"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", script, str(stage.folder)], cwd=ROOT)
    await_that(lambda: bool(pids(stage, "learner") and pids(stage, "actor_0")))
    server = stage.folder / "server"
    await_that(lambda: server.exists() and bool(server.read_text()))
    children = [*pids(stage, "learner"), *pids(stage, "actor_0"), int(server.read_text())]
    assert all(map(lives, children))
    supervisor.kill()
    supervisor.wait()
    await_that(lambda: not any(map(lives, children)))


def test_children_are_out_of_reach_of_the_terminals_ctrl_c(stage: Stage) -> None:
    child = Child(stage.spec("learner", WAITS))
    child.start()
    assert os.getpgid(child.pid) == child.pid != os.getpgid(0)
    child.kill()
    assert not child.running


def test_a_server_elsewhere_cannot_be_started_from_here(stage: Stage) -> None:
    server = RedisServer(RedisConfig("no-such-host.invalid", 1), CONF, stage.folder / "redis.log")
    with pytest.raises(RedisServerError, match="bind and protected-mode"):
        server.ensure()


def test_another_program_on_the_port_is_named(stage: Stage) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        config = RedisConfig("127.0.0.1", other.server_port)
        with pytest.raises(
            RedisServerError, match="another program listens there .* check --host-redis and --port-redis"
        ):
            RedisServer(config, CONF, stage.folder / "redis.log").ensure()
        other.shutdown()


def test_a_server_that_cannot_start_says_why(stage: Stage) -> None:
    conf = stage.folder / "broken.conf"
    conf.write_text("no-such-directive yes\n")
    server = RedisServer(stage.config, conf, stage.folder / "redis.log")
    with pytest.raises(RedisServerError, match="no-such-directive"):
        server.ensure()
    with pytest.raises(RedisServerError, match="--redis-conf"):
        RedisServer(stage.config, stage.folder / "none.conf", stage.folder / "redis.log").ensure()


def test_a_machine_without_a_server_program_is_told_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(stage.folder))
    with pytest.raises(RedisServerError, match="apt-get install redis-server"):
        stage.server().ensure()


def test_actors_alone_have_finished_when_each_has(stage: Stage) -> None:
    stage.finished, stage.done = False, {"actor 0", "actor 1"}
    actors = [stage.spec(f"actor {number}", "print('over')") for number in range(2)]
    assert stage.supervise(None, *actors) == 0
    logs = [actor.log.read_text() for actor in actors]
    assert logs == ["over\n"] * 2, "none was started again"


def test_actors_alone_are_stopped_without_a_word_of_a_learner(stage: Stage) -> None:
    stage.finished = False
    actor = stage.spec("actor 0", SAVES, str(stage.folder / "saved"))

    def interrupt_when_ready() -> None:
        if "ready" in stage.echoed:
            os.kill(os.getpid(), signal.SIGTERM)

    assert stage.supervise(None, actor, tick=interrupt_when_ready) == 0
    assert (stage.folder / "saved").exists() and "learner" not in stage.words()


def test_the_last_lines_of_a_long_log_take_no_memory(stage: Stage) -> None:
    """Only its end is read; a line that began before that is not whole."""
    code = "print('-' * 5_000_000); print('one'); print('two')"
    child = Child(stage.spec("actor 0", code))
    child.start()
    await_that(lambda: child.exit_code == 0)
    tracemalloc.start()
    assert child.last_lines(2) == ["one", "two"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
