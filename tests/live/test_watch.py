"""What the page knows of a real run, and that it neither writes nor runs what Redis names."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import redis
import torch

from args import read_args
from live.estimator import NoEstimate
from live.page.overview import HEADER, groups_of, row_of, settings_rows, state_of
from live.page.panes import learning_pane, replay_pane, scores_pane, settings_pane, sight_pane, time_pane
from live.reading import ReadOnlyClient, ServerRun
from live.sight import SeenChunk
from live.watch import KnownRun, Watch
from memory.runs.access import acl_of
from memory.runs.keys import Keys
from memory.runs.reports import publish_status
from memory.runs.run import open_run
from memory.server.connection import Client, RedisConfig, make_client
from reporting.tables import EpisodeRecord, EpisodeTable
from tests.processes import run
from tests.server import serving
from wiring.setting import restore_agent

FLAGS = (
    "--game probe:catch --serial --threads 1 --memory-capacity 2000 --learn-start 200 --T-max 3000"
    " --replay-frequency 8 --hidden-size 16 --batch-size 8 --num-tau-samples 4 --num-tau-prime-samples 4"
    " --num-quantile-samples 4 --chunk-length 8 --envs-per-actor 4 --weight-synchro-frequency 8"
).split()
"""Some seconds of learning: a learner publishes no status in its first."""


class Played(NamedTuple):
    socket: str
    folder: Path


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """A server that holds a run which has ended, and its folder."""
    folder = tmp_path_factory.mktemp("live")
    with serving(folder) as socket:
        results = folder / "results"
        where = ["--host-redis", socket, "--path-to-results", results]
        run("launch_learner.py", *FLAGS, *where, log=folder / "log")
        yield Played(socket, results)


def watch_of(socket: str, folder: Path | None, user: str = "") -> Watch:
    watch = Watch(RedisConfig(socket, 0, user), folder)
    watch.look()
    assert not watch.trouble
    return watch


def only_run(watch: Watch) -> KnownRun:
    (found,) = watch.find([run.label for run in watch.runs])
    return found


def test_the_run_is_known_from_redis_and_from_its_folder(played: Played) -> None:
    known = only_run(watch_of(played.socket, played.folder))
    assert known.server is not None and known.folder is not None
    row = dict(zip(HEADER, row_of(known), strict=True))
    assert row["state"] == "finished" and row["agent"] == "iqn" and row["agent steps"].endswith("/ 3,000")
    assert known.scores.episodes > 50 and known.scores.num_actions == 3
    assert known.learning is not None and "loss" in known.learning.points[-1].metrics
    assert known.settings["seed"] == 123
    assert known.server is not None
    known.server = known.server._replace(learner={**known.server.learner, "mean_score": -0.04})
    assert dict(zip(HEADER, row_of(known), strict=True))["mean score"] == "0.0", "no sign before nothing"


def test_values_are_those_of_the_published_weights(played: Played) -> None:
    watch = watch_of(played.socket, None)
    known = only_run(watch)
    assert known.folder is None
    seen = watch.seen(known, None)
    assert seen is not None and seen.states.shape[1:] == (4, 10, 5)
    quantiles = watch.quantiles(known, seen)
    agent = restore_agent(next(played.folder.glob("last_model_*.pth")), read_args([])).agent
    with torch.inference_mode():
        expected = agent.estimates(torch.from_numpy(seen.states)).numpy()
    np.testing.assert_allclose(quantiles, expected, rtol=1e-4, atol=1e-5)


def test_newer_weights_are_asked_for_after_a_rest(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watch_of(played.socket, None)
    known = only_run(watch)
    seen = watch.seen(known, None)
    assert seen is not None

    def asked(rest: float) -> int:
        """Commands that the second estimate sends."""
        monkeypatch.setattr("live.estimator.REST", rest)
        known.estimator = None
        watch.quantiles(known, seen)
        with closing(make_client(RedisConfig(played.socket, 0))) as client:
            calls = client.info("commandstats")["cmdstat_get"]["calls"]
            watch.quantiles(known, seen)
            return int(client.info("commandstats")["cmdstat_get"]["calls"] - calls)

    assert (asked(0.0), asked(1e6)) == (1, 0)


def test_every_pane_has_something_to_show(played: Played) -> None:
    watch = watch_of(played.socket, played.folder)
    runs = [only_run(watch)]
    panes = scores_pane(runs, True), learning_pane(runs, True), replay_pane(watch, runs)
    assert all(pane[0].figure.data for pane in panes)
    assert np.isclose(sum(panes[2][1].figure.data[0].y), 1.0), "the priorities' histogram"
    seen = learning_pane([only_run(watch_of(played.socket, None))], True)[0].figure
    titles = [each.text for each in seen.layout.annotations]
    assert titles == ["loss", "updates", "total priority"], "without a folder"
    sight = sight_pane(watch, runs[0], 0)
    assert "of actor 0" in sight[0].children and len(sight[1].children) == 4, "a picture for each frame"
    assert set(sight[2].figure.data[0].y) == {"left"}, "actions by their names"
    assert "No experience" in sight_pane(watch, runs[0], 3)[0].children
    assert settings_pane(runs, False) and time_pane(runs)


def test_a_user_that_may_only_read_is_enough_and_nothing_changes(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = make_client(RedisConfig(played.socket, 0))
    line = acl_of("probe:catch", redis_7=True).splitlines()[-1]
    _, name, *rules = line.split()
    owner.execute_command("ACL", "SETUSER", name, *rules, ">secret")
    owner.set(Keys("other").counters, "hidden")
    held = {key: owner.dump(key) for key in owner.keys("*")}
    monkeypatch.setenv("REDIS_PASSWORD", "secret")
    watch = watch_of(played.socket, played.folder, name)
    known = only_run(watch)
    assert known.name == "probe:catch" and watch.priorities(known).size
    seen = watch.seen(known, 0)
    assert seen is not None and watch.quantiles(known, seen).shape[1:] == (4, 3)
    assert not watch.trouble
    assert {key: owner.dump(key) for key in owner.keys("*")} == held
    owner.delete(Keys("other").counters)


def test_the_client_has_no_command_that_writes(client: Client) -> None:
    reader = ReadOnlyClient(client)
    assert reader.get("nothing") is None
    for command in ("set", "delete", "eval", "execute_command", "pipeline", "flushall"):
        with pytest.raises(AttributeError, match="only reads"):
            getattr(reader, command)


def hostile_run(client: Client, **named: str) -> None:
    settings = {**read_args(["--agent", "dqn", "--history-length", "1"]).shared(), **named}
    open_run(client, Keys("hostile"), settings, False, 0, {}, "token")


@pytest.mark.parametrize(
    "named", [{"game": "hostile:Env"}, {"agent": "hostile:Agent"}, {"game": "unity:build"}]
)
def test_code_that_redis_names_is_not_run(
    named: dict[str, str],
    client: Client,
    redis_socket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A module that could be imported, and a program, with a side effect; the folder's run names it too."""
    (tmp_path / "hostile.py").write_text("open('ran', 'w').close()\nclass Env: pass\nclass Agent: pass\n")
    (tmp_path / "build").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "build").chmod(0o755)
    arguments = {**read_args([]).model_dump(), **named}
    (tmp_path / "run_hostile.json").write_text(json.dumps({"arguments": arguments, "commit": None}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    hostile_run(client, **named)
    watch = watch_of(redis_socket, tmp_path)
    for known in watch.find([each.label for each in watch.runs]):
        row_of(known)
        assert settings_rows([known], True)
        sight_pane(watch, known, None)
    (known,) = (each for each in watch.runs if each.server)
    frames = np.zeros((2, 1, 4), np.float32)
    seen = SeenChunk(0, "hostile:Env", 1, frames, np.zeros(2, np.int64), np.zeros(2, np.float32))
    with pytest.raises(NoEstimate):
        watch.quantiles(known, seen)
    assert not (tmp_path / "ran").exists() and "hostile" not in sys.modules


def test_runs_that_differ_by_their_seed_alone_are_one_group(client: Client, redis_socket: str) -> None:
    for name, lr in (("a", 0.1), ("b", 0.1), ("c", 0.2)):
        open_run(client, Keys(name), {**read_args([]).shared(), "lr": lr}, False, 0, {}, "token")
    runs = watch_of(redis_socket, None).runs
    assert {label: [each.name for each in group] for label, group in groups_of(runs).items()} == {
        "iqn, 2 runs": ["a", "b"],
        "c": ["c"],
    }
    assert settings_rows(runs, False) == [["lr", "0.1", "0.1", "0.2"]]
    assert len(settings_rows(runs, True)) > 50


@pytest.mark.parametrize("setting", [("T_max", 1000), ("a_flag_of_my_agent", 8)])
def test_runs_whose_schedules_or_own_flags_differ_are_no_group(
    setting: tuple[str, int], client: Client, redis_socket: str
) -> None:
    for name, others in (("a", {}), ("b", dict([setting]))):
        open_run(client, Keys(name), {**read_args([]).shared(), **others}, False, 0, {}, "token")
    assert groups_of(watch_of(redis_socket, None).runs).keys() == {"a", "b"}


def test_a_folder_of_another_servers_run_is_not_this_ones(
    client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """Though that has the same name and began later."""
    opened = open_run(client, Keys("pong"), read_args([]).shared(), False, 0, {}, "token")
    for place, began in (("ours", opened.began), ("theirs", opened.began + 1)):
        (tmp_path / place).mkdir()
        document = {"arguments": {"game": "pong", "run": ""}, "commit": None, "began": began}
        (tmp_path / place / "run_pong.json").write_text(json.dumps(document))
    os.utime(tmp_path / "ours" / "run_pong.json", (1, 1))
    (known,) = (run for run in watch_of(redis_socket, tmp_path).runs if run.server is not None)
    assert known.folder is not None and known.folder.place == "ours"


def test_runs_stay_while_the_server_is_away(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Also where a run that ended long ago lies in a folder under the same name."""
    open_run(client, Keys("pong"), read_args([]).shared(), False, 0, {}, "token")
    old = {"arguments": {"game": "pong", "run": ""}, "commit": None}
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "run_pong.json").write_text(json.dumps(old))
    os.utime(tmp_path / "old" / "run_pong.json", (1, 1))
    watch = watch_of(redis_socket, tmp_path)
    before = {run.label: run for run in watch.runs}
    assert before.keys() == {"pong", "pong · old"} and before["pong"].server is not None
    answers, watch._client = watch._client, ReadOnlyClient(make_client(RedisConfig(str(tmp_path / "no"), 0)))
    for watch._list_at in (0.0, float("inf")):  # a look that lists runs, and one that does not
        watch._look_at = 0
        watch.look()
        assert watch.trouble and {run.label: run for run in watch.runs} == before
    watch._client, watch._look_at, watch._list_at = answers, 0, 0
    watch.look()
    assert not watch.trouble and {run.label: run for run in watch.runs} == before


def test_a_silent_server_is_asked_once_a_look(
    client: Client, redis_socket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a look would take the patience of a connection for each run."""
    for name in ("a", "b", "c"):
        open_run(client, Keys(name), read_args([]).shared(), False, 0, {}, "token")
    watch, asked = watch_of(redis_socket, None), []

    def silent(_: object, name: str) -> ServerRun:
        asked.append(name)
        raise redis.exceptions.TimeoutError("silent")

    monkeypatch.setattr("live.watch.read_run", silent)
    watch._look_at = 0
    watch.look()
    assert watch.trouble and asked == ["a"] and {run.label for run in watch.runs} == {"a", "b", "c"}


@pytest.mark.parametrize("fault", ["forbidden", "damaged"])
def test_a_run_whose_episodes_cannot_be_read_leaves_the_others_alone(
    fault: str, client: Client, redis_socket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        open_run(client, Keys(name), read_args([]).shared(), False, 0, {}, "token")
        publish_status(client, Keys(name), "learner", {"updates": 1})
    if fault == "damaged":
        client.set(Keys("b").episodes, "no stream")
    else:
        owned = [f"~{key}" for key in (*Keys("a").experience, *Keys("c").experience, "*lease*")]
        owned += [f"~{key}" for key in Keys("b").experience if key != Keys("b").episodes]
        client.execute_command("ACL", "SETUSER", "some", "on", ">secret", "+@all", *owned)
    monkeypatch.setenv("REDIS_PASSWORD", "secret")
    watch = Watch(RedisConfig(redis_socket, 0, "some" if fault == "forbidden" else "default"), None)
    watch.look()
    assert watch.trouble.startswith("Redis at")
    assert [len(run.moments.kept) for run in watch.runs] == [1, 1, 1]


def test_the_table_of_a_run_is_read_also_after_its_stream(
    client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """As of a run that went on upon an emptied server."""
    keys = Keys("pong")
    open_run(client, keys, read_args(["--game", "pong"]).shared(), False, 0, {}, "token")
    episodes = [EpisodeRecord(0, n, 0, 10 * n, 0, 1.0, 1.0, 1.0, 9, game="pong") for n in range(1, 6)]
    client.xadd(keys.episodes, {"episode": json.dumps(episodes[-1])})
    EpisodeTable(tmp_path / "pong.csv").add(episodes[:4])
    document = {"arguments": {"game": "pong", "run": ""}, "commit": None}
    (tmp_path / "run_pong.json").write_text(json.dumps(document))
    watch = watch_of(redis_socket, tmp_path)
    (known,) = watch.find(["pong"])
    watch._look_at = 0
    watch.look()
    assert known.folder is not None and known.scores.episodes == 5


def test_a_server_that_is_away_is_a_sentence(tmp_path: Path) -> None:
    watch = Watch(RedisConfig(str(tmp_path / "none"), 0), tmp_path)
    watch.look()
    assert watch.trouble.startswith("Redis at") and watch.runs == []
    for folder in ("dqn/seed1", "iqn/seed1"):
        (tmp_path / folder).mkdir(parents=True)
        document = {"arguments": {"game": "pong", "run": ""}, "commit": None}
        (tmp_path / folder / "run_pong.json").write_text(json.dumps(document))
    watch = Watch(RedisConfig(str(tmp_path / "none"), 0), tmp_path)
    watch.look()
    labels = {run.label for run in watch.runs}
    assert labels == {"pong · dqn/seed1", "pong · iqn/seed1"}, "what lies in folders is there without it"


def test_what_a_learner_warns_of_stands_beside_its_state() -> None:
    said = {"state": "learning", "warning": "learning diverges"}
    run: Any = SimpleNamespace(server=SimpleNamespace(learner_lives=True, learner=said))
    assert state_of(run) == "learning ⚠ learning diverges"
    said["warning"] = ""
    assert state_of(run) == "learning"
