"""A resumed run equals, bit by bit, one that was never interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from args import Args, read_args
from launch_learner import run_learner
from learning.saved.snapshot import load_snapshot
from memory.replay.batch import Batch
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.server.connection import Client
from supervision.process import Stop
from wiring.code import canonical
from wiring.learner import build_learner, claimed_folder
from wiring.setting import setting_of

WORDS = (
    "--serial --memory-capacity 400 --learn-start 200 --replay-frequency 2 --batch-size 8 --hidden-size 16"
    " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --target-update 200"
    " --weight-synchro-frequency 40 --envs-per-actor 2 --T-max 600 --threads 1 --seed 5"
).split()


class StopAfter(Stop):
    """Asks for the end after it was looked at so many times: in the middle of whatever is done then."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def __call__(self) -> bool:
        self._looks -= 1
        return self._looks < 0


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def _differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Where nested dicts and lists of tensors, arrays and plain values are not equal in every bit."""
    if isinstance(one, dict) and one.keys() == other.keys():
        return [place for name in one for place in _differences(one[name], other[name], f"{where}/{name}")]
    if isinstance(one, list | tuple) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [place for number, pair in pairs for place in _differences(*pair, f"{where}/{number}")]
    return [] if np.array_equal(np.asarray(one), np.asarray(other)) else [where]


@pytest.mark.parametrize(
    ("game", "agent"),
    [
        pytest.param("CartPole-v1", "iqn", marks=pytest.mark.slow),
        pytest.param("Pendulum-v1", "naf", marks=pytest.mark.slow),
        pytest.param("pettingzoo:connect_four_v3", "double_dqn --discount -1", marks=pytest.mark.slow),
        ("montezuma_revenge", "iqn --torso data_efficient --max-episode-steps 60"),
    ],
)
def test_a_serial_run_stopped_three_times_equals_one_never_stopped(
    game: str, agent: str, client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """In warm-up, and twice while it learns: weights, optimiser, generators, scores and priorities."""
    names = ("whole", "stopped")
    words = [*WORDS, "--game", game, "--agent", *agent.split(), "--host-redis", redis_socket]
    played = []
    for name, stops in (("whole", [Stop()]), ("stopped", [*map(StopAfter, (70, 130, 201)), Stop()])):
        place = ["--run", name, "--path-to-results", str(tmp_path / name)]
        for stop in stops:
            run_learner(canonical(read_args([*words, *place])), stop)
            played.append(read_counters(client, Keys(name)).steps)
    assert 0 < played[1] < 200 < played[2] < played[3] < 600 <= played[4], played

    whole, stopped = (_end(tmp_path / name) for name in names)
    assert whole["updates"] >= 200
    assert _differences(whole, stopped) == []
    tables = [next((tmp_path / name).glob("[!l]*.csv")).read_text() for name in names]
    assert tables[0] == tables[1] and tables[0].count("\n") > 2
    priorities = [client.hgetall(Keys(name).priorities) for name in names]
    assert priorities[0] == priorities[1] and len(priorities[0]) == 400 // 16


def test_a_learner_whose_actors_pause_goes_on_with_the_same_batches(
    client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """On a replay of AtariVectorEnv, which no one can save: 100 batches at once, and 50 on either side of a
    restart.
    """
    words = [*WORDS, "--game", "pong", "--torso", "data_efficient", "--host-redis", redis_socket]
    words += ["--synchronize-actors-with-learner", "0", "--path-to-results", str(tmp_path / "whole")]
    args = canonical(read_args(words))
    run_learner(args, StopAfter(150))
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    held = {key: client.dump(key) for key in client.keys("*")}

    whole = _learn(args, client, 100)
    client.flushall()
    for key, value in held.items():
        client.restore(key, 0, value)
    args = args.model_copy(update={"path_to_results": str(tmp_path / "stopped")})
    halves = [_learn(args, client, 50) for _ in range(2)]

    assert _differences(whole, [batch for half in halves for batch in half]) == []
    assert _differences(_end(tmp_path / "whole"), _end(tmp_path / "stopped")) == []


def _learn(args: Args, client: Client, batches: int) -> list[Batch]:
    """What a learner that begins anew from the last snapshot, and saves another, learns from."""
    keys, learned = Keys(args.run_name), []
    with (
        Lease(client, keys.learner_lease).acquire("learner") as lease,
        claimed_folder(args, client, keys, Stop()) as folder,
    ):
        learning = build_learner(setting_of(args), client, keys, lease, folder, Stop())
        source = learning.learner.source
        for _ in range(batches):
            learned.append(source.draw())
            learning.learner.learn(learned[-1])
            source.apply_losses(write_back=True)
        learning.saver.close()
    return learned


def _end(folder: Path) -> dict[str, Any]:
    """The last snapshot, without what tells of its process, and without what depends on when it saved."""
    (path,) = folder.glob("last_model_*")
    own = {"epoch", "began", "settings", "config", "global_generators", "best_mean", "best_episodes"}
    return {name: value for name, value in load_snapshot(path).items() if name not in own}
