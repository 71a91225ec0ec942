"""`python -m memory.runs` over a real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memory.chunks.builder import ChunkBuilder
from memory.runs.__main__ import main
from memory.runs.access import acl_lines
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.reports import publish_status
from memory.runs.run import open_run
from memory.runs.scripts import Sender
from memory.runs.shards import admitted
from memory.server.connection import Client
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, make_pusher, packets, settings_of
from tests.memory.sharded import begin_sharded, make_shards, places_on
from tests.server import serving

CAPACITY = 400


@pytest.fixture
def place(client: Client, redis_socket: str) -> list[str]:
    """Two runs on the server, `quiet` with some chunks, and a key of somebody else."""
    for run in ("quiet", "busy:2"):
        keys = Keys(run)
        opened = begin(client, keys, CAPACITY)
        pusher, lease = make_pusher(client, keys, opened.epoch, CAPACITY)
        drafts = feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 100))
        pusher.push(packets(drafts, 1.0))
        publish_status(client, keys, "actor:0", {"t": 1})
        lease.release()
    client.set("{other}:counters", 1)
    return ["--host-redis", redis_socket]


def test_list_and_show_say_what_is_there(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", *place]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["busy:2", "quiet"]
    assert all("100 steps, no learner, 0 actors alive, last heard " in line for line in lines)
    assert float(lines[1].partition(": ")[2].partition(" MB")[0]) > 0
    assert main(["show", "quiet", *place]) == 0
    told = capsys.readouterr().out
    assert '"memory_capacity": 400' in told and '"actor:0"' in told


def test_the_first_node_of_a_run_in_shards_is_asked(
    place: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "quiet", "--redis-nodes", f"{place[1]},localhost:1"]) == 0
    assert capsys.readouterr().out.startswith("quiet: ")
    assert main(["list", "--redis-nodes", "localhost", "--redis-cluster"]) == 2
    assert capsys.readouterr().err.startswith("error: --redis-nodes localhost: 'localhost' is no server: ")


def test_delete_removes_one_run_after_asking(
    place: list[str], client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for reply, words in (("n", "left as it is"), ("y", "was removed")):
        monkeypatch.setattr("builtins.input", lambda _, reply=reply: reply)
        assert main(["delete", "quiet", *place]) == 0
        assert words in capsys.readouterr().out
    assert not [key for key in client.keys("*") if key.startswith(b"{quiet")]
    assert client.exists("{other}:counters", Keys("busy:2").chunks) == 2
    assert main(["delete", "quiet", *place]) == 2
    assert "holds no run 'quiet'; it holds: busy:2." in capsys.readouterr().err


def test_delete_removes_every_shard_that_it_is_led_to(
    redis_socket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path) as other:
        nodes = f"{redis_socket},{other}"
        for given, missing in ((nodes, ""), (redis_socket, "1"), (f"{redis_socket},/nowhere", "1")):
            places = places_on((redis_socket, other), 3)
            opened = begin_sharded(places)
            make_shards(places, opened)
            lease = Lease(places[0].client, places[0].keys.actor_lease(1)).acquire("actor 1")
            admitted(Sender(*places[0], 1, lease.token, opened.epoch), places[1])
            lease.release()
            assert main(["delete", "run", "--yes", "--redis-nodes", given]) == 0
            stays = " Not found, and left: shards 1; give all of the run's --redis-nodes." if missing else ""
            assert capsys.readouterr().out == f"Run 'run' was removed.{stays}\n"
            assert not places[0].client.keys("{run:*")
            assert bool(places[1].client.keys("{run:1}*")) == bool(missing)
            places[1].client.flushall()


def test_all_shards_that_are_found_count(
    redis_socket: str, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*words: str) -> tuple[int, str]:
        assert main([*words, "--host-redis", redis_socket]) == 0
        size, _, rest = capsys.readouterr().out.removeprefix("run: ").partition(" MB")
        return int(float(size)), rest.partition(",")[0]

    with serving(tmp_path) as other:
        places = places_on((redis_socket, other), 3)
        make_shards(places, begin_sharded(places))
        places[1].client.hset(places[1].keys.chunks, "1", bytes(3_000_000))
        places[2].client.hset(places[2].keys.chunks, "1", bytes(2_000_000))
        nodes = "--redis-nodes", f"{redis_socket},{other}"
        for command in (["list"], ["show", "run"]):
            assert told(*command, *nodes) == (5, "")
            assert told(*command) == (2, " in 2 of 3 shards")
        viewer = acl_lines("{run:0}:")[2].split()
        client.execute_command("ACL", "SETUSER", *viewer[1:], ">secret")
        (password := tmp_path / "password").write_text("secret")
        who = "--user-redis", "viewer", "--redis-password-file", str(password)
        assert told("show", "run", *who) == (0, " in 1 of 3 shards")


def test_delete_asks_somebody(
    place: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody can answer, or Ctrl-C is the answer, nothing is removed."""
    for end, code, words in ((EOFError, 0, "left as it is"), (KeyboardInterrupt, 130, "nothing was changed")):
        monkeypatch.setattr("builtins.input", raiser(end))
        assert main(["delete", "quiet", *place]) == code
        told = capsys.readouterr()
        assert words in told.out + told.err
    assert main(["show", "quiet", *place]) == 0


def raiser(error: type[BaseException]) -> Callable[[str], str]:
    def answer(_: str) -> str:
        raise error

    return answer


def test_what_no_run_leaves_is_one_sentence(
    place: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.hset(Keys("quiet").counters, "steps", "many")
    assert main(["list", *place]) == 2
    assert "damaged, or another program wrote it: A counter in Redis holds" in capsys.readouterr().err
    client.set("{odd:0}:counters", "no hash")
    assert main(["show", "odd", *place]) == 2
    assert "damaged, or another program wrote it: WRONGTYPE" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["list", "--port-redis", "99999"])
    assert ended.value.code == 2


def test_a_run_in_use_is_left_alone(
    place: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = Keys("quiet")
    lease = Lease(client, keys.learner_lease).acquire("learner")
    open_run(client, keys, settings_of(SHAPE, CAPACITY), True, 0, {}, lease.token)
    assert main(["delete", "quiet", "--yes", *place]) == 2
    assert "learner alive" in capsys.readouterr().err
    assert client.exists(keys.chunks)
    lease.release()


def test_no_server_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--host-redis", "/nowhere"]) == 2
    assert "No Redis server answers at /nowhere" in capsys.readouterr().err
