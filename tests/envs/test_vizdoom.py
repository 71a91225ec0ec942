"""VizDoom: the contract of envs/contract.py, and what VizDoom itself does otherwise.

The vector's own part of the contract, autoresets and masks, is tested on Malmo's missions, which share it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from envs.config import EnvConfig, EnvDescription, EnvError
from envs.contract import SeededVectorEnv
from envs.registry import canonical_game, describe_env, make_env, make_playback
from envs.vizdoom import PREFIX, SCENARIOS, smallest_resolution
from tests.envs import test_contract
from tests.processes import ROOT

MakeConfig = Callable[..., EnvConfig]
MY_WAY_HOME = "vizdoom:my_way_home"
IDLE, RIGHT = np.zeros((1, 2), np.float32), np.array([[1.0, 0.0]], np.float32)

test_shapes_and_dtypes_are_as_described = test_contract.test_shapes_and_dtypes_are_as_described
test_same_seeds = test_contract.test_same_seeds_give_the_same_episodes_and_neighbours_differ
test_a_full_reset = test_contract.test_a_full_reset_starts_again_from_the_same_seeds
test_returned_arrays_are_not_written_to_again = test_contract.test_returned_arrays_are_not_written_to_again


@pytest.fixture
def config(make_config: MakeConfig) -> EnvConfig:
    return make_config(MY_WAY_HOME)


def begin(config: EnvConfig) -> tuple[SeededVectorEnv, np.ndarray]:
    env = make_env(config, [7])
    return env, env.reset()[0]


def test_names(make_config: MakeConfig) -> None:
    assert canonical_game(MY_WAY_HOME) == MY_WAY_HOME
    with pytest.raises(EnvError, match=f"did you mean {MY_WAY_HOME}"):
        describe_env(make_config("vizdoom:my_way_hom"))


@pytest.mark.parametrize("game", [PREFIX + scenario for scenario in SCENARIOS])
def test_every_scenario_starts_and_goes_on(game: str, make_config: MakeConfig) -> None:
    env, first = begin(make_config(game))
    frames, _, terminated, truncated, _ = env.step(np.array([[0.5, 1.0]], np.float32))
    assert not (terminated | truncated).any()
    assert (frames != first).mean() > 0.1


def test_description(config: EnvConfig) -> None:
    assert describe_env(config) == EnvDescription(
        (120, 160, 3), "uint8", None, (-1.0, -1.0), (1.0, 1.0), 4, 35.0, 4, mirrored_action=(-1.0, 1.0)
    )


def test_a_time_out_is_a_truncation_and_keeps_its_last_frame(make_config: MakeConfig) -> None:
    env, frames = begin(make_config(MY_WAY_HOME, action_repeat=300))  # 7 steps of 300 are the limit of 2,100
    flags = []
    for _ in range(7):
        before = frames
        frames, rewards, terminated, truncated, _ = env.step(IDLE)
        flags.append((bool(terminated[0]), bool(truncated[0])))
        assert rewards[0] == pytest.approx(-0.03, abs=1e-3)  # 0.0001 for each tic
    assert flags == [(False, False)] * 6 + [(False, True)]
    assert np.array_equal(frames, before)
    assert frames.any()
    frames, rewards, terminated, truncated, _ = env.step(IDLE)
    assert (rewards[0], terminated[0], truncated[0]) == (0.0, False, False)
    assert not np.array_equal(frames, before)


def test_death_is_a_termination(make_config: MakeConfig) -> None:
    env, _ = begin(make_config("vizdoom:health_gathering", action_repeat=100))
    terminated, alive = np.zeros(1, np.bool_), 0
    while not terminated[0]:
        frames, rewards, terminated, truncated, _ = env.step(IDLE)
        assert not truncated.any()
        assert rewards[0] == 100 or terminated[0]  # 1 for each tic alive
        alive += 1
    assert 2 < alive < 20  # the floor is deadly
    assert -100 <= rewards[0] < 0
    assert frames.any()


@pytest.mark.parametrize("tics", [1, 4, 7])
def test_a_step_turns_as_far_whatever_the_frame_skip(tics: int, make_config: MakeConfig) -> None:
    env, first = begin(make_config(MY_WAY_HOME, action_repeat=tics))
    for step in range(1, 25):  # 24 steps of 15 degrees
        frames = env.step(RIGHT)[0]
        difference = np.abs(frames.astype(int) - first).mean()
        assert difference < 10 if step == 24 else difference > 15


def test_a_turn_to_the_right_moves_the_view_to_the_left(config: EnvConfig) -> None:
    env, first = begin(config)
    turned = env.step(RIGHT * 0.2)[0][0].astype(int)  # 3 degrees are 4 to 5 pixels in the middle
    left, right = (np.abs(turned[:, 50:110] - first[0, :, 50 + s : 110 + s]).mean() for s in (4, -4))
    assert 2 * left < right


def test_other_sizes_are_shrunk_from_the_next_larger_one(make_config: MakeConfig) -> None:
    native = begin(make_config(MY_WAY_HOME))[1][0]
    small = begin(make_config(MY_WAY_HOME, frame_width=84, frame_height=64))[1][0]
    assert np.array_equal(small, cv2.resize(native, (84, 64), interpolation=cv2.INTER_AREA))
    assert smallest_resolution(["RES_640X480", "RES_320X240", "RES_400X225"], 320, 230) == "RES_320X240"
    with pytest.raises(EnvError, match="no frames of 3000 x 120"):
        begin(make_config(MY_WAY_HOME, frame_width=3000))


@pytest.mark.parametrize("tics", [4, 350])
def test_a_film_shows_the_same_frames(tics: int, make_config: MakeConfig) -> None:
    config = make_config(MY_WAY_HOME, action_repeat=tics)
    env, first = begin(config)
    film = make_playback(config, 7)
    assert np.array_equal(first[0], film.first())
    generator = np.random.default_rng(0)
    for _ in range(6):
        action = generator.uniform(-1, 1, 2).astype(np.float32)
        frames, _, _, truncated, _ = env.step(action[None])
        frame, pictures = film.step(action)
        assert np.array_equal(frames[0], frame)
        assert len(pictures) == tics or truncated[0]
    assert truncated[0] == (tics == 350)
    film.close()
    with pytest.raises(sys.modules["vizdoom"].ViZDoomIsNotRunningException):
        film.step(action)


def test_without_the_package_only_the_environment_is_missing(
    config: EnvConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vizdoom", None)
    assert describe_env(config).frame_shape == (120, 160, 3)
    with pytest.raises(EnvError, match="needs the package vizdoom"):
        make_env(config, [0])


PLAY = """
import signal
import numpy as np
from envs.registry import make_env
from tests.envs.conftest import SABER
from dataclasses import replace
signal.signal(signal.SIGINT, lambda *_: None)
env = make_env(replace(SABER, game="vizdoom:my_way_home"), [1])
env.reset()
for _ in iter(lambda: print("played", flush=True) or input(), ""):
    env.step(np.zeros((1, 2), np.float32))
"""


def test_games_outlive_a_ctrl_c_but_not_their_program(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PLAY],
        cwd=work, env=environment, text=True, process_group=0,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as program:  # fmt: skip
        assert program.stdin is not None and program.stdout is not None
        assert program.stdout.readline() == "played\n"
        children = Path(f"/proc/{program.pid}/task").glob("*/children")
        (game,) = "".join(each.read_text() for each in children).split()
        arguments = Path(f"/proc/{game}/cmdline").read_text().split("\0")
        instance = arguments[arguments.index("+viz_instance_id") + 1]
        os.killpg(program.pid, signal.SIGINT)
        time.sleep(0.1)
        print("on", file=program.stdin, flush=True)
        assert program.stdout.readline() == "played\n"
        program.kill()
    until = time.monotonic() + 5
    while Path(f"/proc/{game}").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    for memory in Path("/dev/shm").glob(f"ViZDoom*{instance}"):  # which nobody was left to free
        memory.unlink()
    assert list(work.iterdir()) == []
