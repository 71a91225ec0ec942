"""Games in processes do what AtariVectorEnv does, and the processes end with their parent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from envs.atari.games import AleThreads
from envs.atari.processes import AleProcesses
from envs.config import EnvConfig, EnvError

MakeConfig = Callable[..., EnvConfig]
Make = Callable[..., AleProcesses]
GAME = "montezuma_revenge"
ROOT = Path(__file__).parents[2]
LEFT = 4  # into the abyss
N = 2


@pytest.fixture
def make(make_config: MakeConfig) -> Iterator[Make]:
    """Returns a maker of games in two processes, which are closed afterwards."""
    made = []

    def build(**settings: object) -> AleProcesses:
        made.append(AleProcesses(make_config(GAME, **settings), N, processes=2))
        return made[-1]

    yield build
    for games in made:
        games.close()


def workers_of(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in children if b"envs.atari.processes" in command_of(int(child))]


def command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()  # empty for one that is dead but not waited for
    except FileNotFoundError:
        return b""


def reset(games: Any, *seeds: int, mask: npt.NDArray[np.bool_] | None = None) -> Any:
    marked = np.ones(N, np.bool_) if mask is None else mask
    return games.reset(seed=np.array(seeds) if seeds else None, options={"reset_mask": marked})


def assert_same(ours: Any, theirs: Any) -> None:
    """All that AtariVectorEnv returns but its infos, types included."""
    for our, their in zip(ours[:-1], theirs[:-1], strict=True):
        assert our.dtype == their.dtype
        assert np.array_equal(our, their)


@pytest.mark.parametrize(
    ("steps", "ends", "settings"),
    [
        (365, 1, {}),
        (70, 4, {"max_episode_steps": 21, "action_repeat": 1, "proba_sticky_actions": 0.5}),
    ],
)
def test_the_same_as_atari_vector_env(
    steps: int, ends: int, settings: dict[str, Any], make: Make, make_config: MakeConfig
) -> None:
    """Through whole episodes, their autoresets, and partial resets with and without seeds."""
    ours, theirs = make(**settings), AleThreads(make_config(GAME, **settings), N)
    first, their_first = reset(ours, 2**31 - 1, 5), reset(theirs, 2**31 - 1, 5)
    generator, ended = np.random.default_rng(1), 0
    for step in range(steps):
        actions = np.where(generator.random(N) < 0.8, LEFT, generator.integers(18, size=N))
        results = ours.step(actions), theirs.step(actions)
        assert_same(*results)
        ended += int((results[0][2] | results[0][3]).sum())
        if step in (40, 50):
            mask, seeds = np.array([True, False]), [step] if step == 40 else []
            assert_same(reset(ours, *seeds, mask=mask), reset(theirs, *seeds, mask=mask))
    assert_same(first, their_first)  # only now: nobody wrote to what was returned
    assert ended >= ends


def test_an_error_of_a_process_is_told(make_config: MakeConfig) -> None:
    games = AleProcesses(make_config("no_such_game"), 1)
    with pytest.raises(EnvError, match="ALE has no game called no_such_game"):
        games.reset(seed=np.array([1]), options={"reset_mask": np.array([True])})
    games.close()


def test_the_death_of_a_process_is_told(make: Make) -> None:
    games = make()
    reset(games, 1, 2)
    os.kill(workers_of(os.getpid())[-1], signal.SIGKILL)
    with pytest.raises(ChildProcessError, match=f"A process that plays {GAME} ended with code -9"):
        for _ in range(2):
            games.step(np.zeros(N, np.int64))


def test_processes_end_with_what_nobody_uses(make_config: MakeConfig) -> None:
    """An environment need not be closed, as those of AtariVectorEnv need not."""
    before = set(workers_of(os.getpid()))
    games = AleProcesses(make_config(GAME), N)
    assert set(workers_of(os.getpid())) > before
    del games
    assert set(workers_of(os.getpid())) == before


PARENT = f"""
import numpy as np
from envs.config import EnvConfig
from envs.registry import make_env
env = make_env(EnvConfig("{GAME}", 4, 0.25, False, 300.0, False), [1, 2])
env.reset()
print("playing", flush=True)
while True:
    env.step(np.array([0, 1]))
"""


def test_processes_end_with_a_parent_that_was_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "playing\n"
    workers = workers_of(parent.pid)
    assert workers
    for worker in workers:  # no name in /dev/shm that could outlive them
        assert "/memfd:ale (deleted)" in Path(f"/proc/{worker}/maps").read_text()
    assert all(os.getpgid(worker) == worker for worker in workers)  # Ctrl-C reaches the parent alone
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 20
    while any(command_of(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(command_of(worker) for worker in workers)
