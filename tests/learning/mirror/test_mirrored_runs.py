"""Runs with --gpu-replay end as those without; what it cannot do is said before anything starts."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from args import UserError, read_args
from launch_learner import run_learner
from learning.saved.snapshot import load_snapshot
from memory.replay.replay import Replay
from memory.runs.keys import Keys
from memory.server.connection import Client
from supervision.process import Stop
from tests.learning.mirror.twins import DEVICES, is_gathered
from tests.processes import ROOT, start, wait
from tests.test_exact_resume import WORDS, StopAfter, _differences, _end
from wiring.checks import check_agent_fits
from wiring.code import canonical
from wiring.endings import USER_ERRORS
from wiring.ranks import check_ranks
from wiring.setting import setting_of, setting_of_run
from wiring.sources import check_mirror_fits, check_store


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each batch that a replay of this process draws, whether it was gathered from a mirror."""
    drawn: list[bool] = []
    sample = Replay.sample

    def noted(self: Replay, *words: Any) -> Any:
        batch = sample(self, *words)
        drawn.append(is_gathered(batch))
        return batch

    monkeypatch.setattr(Replay, "sample", noted)
    return drawn


@pytest.mark.parametrize(
    ("game", "agent"),
    [
        ("Pendulum-v1", "naf"),
        pytest.param("CartPole-v1", "iqn", marks=pytest.mark.slow),
        pytest.param(
            "montezuma_revenge",
            "iqn --torso data_efficient --max-episode-steps 60",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_mirrored_run_that_was_stopped_ends_as_a_plain_one(
    game: str, agent: str, gathered: list[bool], client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """Weights, optimiser, generators and priorities, bit by bit; it was stopped while it learned."""
    words = [*WORDS, "--game", game, "--agent", *agent.split(), "--host-redis", redis_socket]
    for name, own, stops in (
        ("plain", [], [Stop()]),
        ("mirrored", ["--gpu-replay"], [StopAfter(201), Stop()]),
    ):
        place = ["--disable-cuda", "--run", name, "--path-to-results", str(tmp_path / name)]
        for stop in stops:
            run_learner(canonical(read_args([*words, *place, *own])), stop)
    updates = _end(tmp_path / "plain")["updates"]
    assert updates >= 200 and gathered == [False] * updates + [True] * updates
    assert _differences(_end(tmp_path / "plain"), _end(tmp_path / "mirrored")) == []
    priorities = [client.hgetall(Keys(name).priorities) for name in ("plain", "mirrored")]
    assert priorities[0] == priorities[1]


SMALL = (
    "--memory-capacity 4000 --learn-start 400 --batch-size 32 --hidden-size 32 --num-tau-samples 8"
    " --num-tau-prime-samples 8 --num-quantile-samples 8 --threads 1 --T-max 1600 --gpu-replay"
).split()


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("game", ["probe:catch", "pong --torso data_efficient"])
def test_a_learner_and_an_actor_run_to_their_end(
    game: str, device: str, client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """The sampler's thread draws ahead while the learner learns."""
    words = [*SMALL, "--game", *game.split(), "--host-redis", redis_socket, "--path-to-results", tmp_path]
    words += ["--disable-cuda"] if device == "cpu" else []
    logs = [tmp_path / "learner.log", tmp_path / "actor.log"]
    launchers = "launch_learner.py", "launch_actor.py"
    wait([start(each, *words, log=log) for each, log in zip(launchers, logs, strict=True)], logs, 240)
    (path,) = tmp_path.glob("last_model_*")
    assert load_snapshot(path)["updates"] == (1600 - 400) // 4
    story = logs[0].read_text()
    assert re.search(rf"--gpu-replay takes [\d.,]+ of [\d.,]+ MB that are free on {device}", story), story


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--shards 2 --nb-actor 2", "--gpu-replay knows one shard only: leave it or --shards 2 out."),
        ("--intrinsic rnd", "--gpu-replay has no frames for --intrinsic rnd: leave one of them out."),
        ("--agent ppo", "--gpu-replay needs an agent that derives from OffPolicyAgent, not ppo."),
        ("--agent random", "--gpu-replay needs an agent that derives from OffPolicyAgent, not random."),
        ("--game CartPole-v1,probe:catch", "--gpu-replay is for games of one kind"),
    ],
)
def test_what_a_mirror_cannot_do_is_said(words: str, sentence: str) -> None:
    setting = setting_of_run(read_args(["--game", "probe:catch", "--gpu-replay", *words.split()]))
    with pytest.raises(USER_ERRORS, match=re.escape(sentence)):
        check_agent_fits(setting)
        check_store(setting.args)


def test_several_learners_have_no_mirror() -> None:
    with pytest.raises(
        UserError, match="--gpu-replay has one learner: leave it out, or the other 1 learners"
    ):
        check_ranks(read_args(["--game", "probe:catch", "--gpu-replay"]), 2)


def test_a_device_with_too_little_memory_ends_a_learner_before_it_begins(
    redis_socket: str, client: Client, tmp_path: Path
) -> None:
    words = "--game pong --memory-capacity 1000000000000 --gpu-replay --disable-cuda --run large".split()
    place = ["--host-redis", redis_socket, "--path-to-results", str(tmp_path / "results")]
    ended = subprocess.run(
        [sys.executable, "launch_learner.py", *words, *place], capture_output=True, text=True, cwd=ROOT
    )
    assert ended.returncode == 2, ended.stderr
    needed = (10**12 // 16 * 26 + 1) * 84 * 84 / 1e6
    sentence = f"error: --gpu-replay needs {needed:,.1f} MB of memory on cpu, where "
    assert sentence in ended.stderr and "Traceback" not in ended.stderr
    assert not client.keys("{large:*") and not (tmp_path / "results").exists()


@pytest.mark.parametrize("lacking", [0, 1])
def test_all_that_is_free_may_be_taken(
    lacking: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    setting = setting_of(read_args("--game CartPole-v1 --gpu-replay --disable-cuda".split()))
    needed = (1_000_000 // 16 * (16 + 3 + 4) + 1) * 4 * 4  # no history; 3 steps more, room for 4 ends
    monkeypatch.setattr("learning.mirror.frames.free_bytes", lambda *_: needed - lacking)
    if lacking:
        with pytest.raises(UserError, match="give a smaller --memory-capacity, or leave it out"):
            check_mirror_fits(setting)
    else:
        with caplog.at_level(logging.INFO):
            check_mirror_fits(setting)
        assert "--gpu-replay takes 23.0 of 23.0 MB that are free on cpu." in caplog.text


def test_a_run_without_it_imports_none_of_it() -> None:
    code = "import sys, launch_learner, launch_actor; sys.exit(any('mirror' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
