"""Unity's builds of ML-Agents' present protocol: a stand-in that calls over real gRPC.

The slow test lets ML-Agents' own Python side, mlagents-envs, play the stand-in too, and sees the same.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.spaces import Discrete

from envs.config import EnvConfig, EnvError, EnvFailure
from envs.contract import SeededVectorEnv
from envs.legal import legal_actions
from envs.multi.barrier import SeatView, play_seats
from envs.registry import describe_env, make_env, share_env
from envs.unity import lone_brain
from envs.unity.protocols.bodies import PlayerLimits
from envs.unity.vector import UnityVector
from tests.envs.opened import make_env as opened
from tests.processes import ROOT, until

MakeConfig = Callable[..., EnvConfig]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that starts the stand-in."""
    program = tmp_path / "scene.x86_64"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tests.envs.mlagents_build "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("UNITY_FAULT", str(tmp_path / "fault"))
    return program


@pytest.fixture
def config(build: Path, make_config: MakeConfig) -> EnvConfig:
    return make_config(f"unity:{build}", env_args='{"brain": "Counters"}')


@pytest.fixture
def env(config: EnvConfig) -> Iterator[SeededVectorEnv]:
    vector = lone_brain(config, [1, 2, 3], PlayerLimits(reply=5.0))
    yield vector
    vector.close()


def actions(*numbers: int) -> np.ndarray:
    return np.array(numbers)


def test_bodies_are_rows_and_branches_are_one_choice(config: EnvConfig) -> None:
    env = opened(config, [1, 2, 3, 4])
    assert isinstance(env, UnityVector)
    frames, _ = env.reset()
    assert env.single_action_space == Discrete(2 * 3) and len(env._parts) == 2
    assert frames[:, :2].tolist() == [[0, 0]] * 4
    frames, rewards, terminated, truncated, _ = env.step(actions(0, 1, 3, 4))
    assert frames.tolist() == [[0, 1, 0], [0, 1, 1], [0, 1, 3], [0, 1, 4]]
    assert rewards.tolist() == [0.5] * 4 and not (terminated | truncated).any()


def test_an_end_shows_its_own_last_frame_and_says_why(env: SeededVectorEnv) -> None:
    """Ends come in calls of their own, in which the other bodies say nothing."""
    env.reset()
    for _ in range(3):
        env.step(actions(1, 1, 1))
    frames, rewards, terminated, truncated, _ = env.step(actions(1, 1, 1))
    assert frames[:, :2].tolist() == [[0, 4]] * 3 and terminated.tolist() == [True, False, False]
    assert rewards.tolist() == [-0.75, 0.5, 0.5], "the group's reward is in it"
    frames, rewards, terminated, *_ = env.step(actions(5, 1, 1))
    assert frames[0].tolist() == [1, 1, 0], "a step of the next episode with action 0, unseen"
    assert rewards[0] == 0 and terminated.tolist() == [False, True, False]
    frames, _, terminated, truncated, infos = env.step(actions(1, 1, 1))
    assert frames[2].tolist() == [0, 6, 1] and not terminated[2] and truncated[2]
    assert not infos["interrupted"].any(), "a body's own limit is no trouble"


def test_a_row_that_is_reset_at_its_end_loses_no_step(env: SeededVectorEnv) -> None:
    env.reset()
    for _ in range(4):
        env.step(actions(1, 1, 1))
    frames, _ = env.reset(seed=[8], options={"reset_mask": np.array([True, False, False])})
    assert frames[0, :2].tolist() == [1, 0] and frames[1, :2].tolist() == [0, 4]
    frames, rewards, *_ = env.step(actions(4, 1, 1))
    assert frames[0].tolist() == [1, 1, 4] and rewards[0] == 0.5


def test_bodies_that_ask_at_different_times_repeat_their_action(
    config: EnvConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body's own action is the last that it took before its frame; rewards in between add up."""
    monkeypatch.setenv("UNITY_STAGGER", "1")
    env = opened(config, [1, 2, 3])
    assert isinstance(env, UnityVector) and len(env._parts) == 1, "all three are of one player"
    env.reset()
    steps: npt.NDArray[Any] = np.zeros(3)
    for number in (1, 4, 3):
        frames, rewards, terminated, truncated, _ = env.step(actions(number, number, number))
        assert frames[:, 2].tolist() == [number] * 3
        assert (rewards == 0.5 * (frames[:, 1] - steps))[~terminated].all(), (
            "0.5 for each step that was taken"
        )
        steps = frames[:, 1].copy()
        if terminated.any():
            break
    assert (steps > 1).any()


def test_a_forbidden_action_is_replaced_by_the_first_legal_one(config: EnvConfig) -> None:
    env = opened(config, [1, 2])
    env.reset()
    assert env.step(actions(2, 5))[0][:, 2].tolist() == [0, 0], "the last of the second branch is forbidden"
    assert env.step(actions(2, 5))[0][:, 2].tolist() == [2, 5]


def test_a_scene_whose_body_leaves_for_good_is_refused(config: EnvConfig, build: Path) -> None:
    env = opened(config, [1, 2, 3])
    env.reset()
    (build.parent / "fault").write_text("leave")
    with pytest.raises(EnvError, match="has asked for 200 actions while another asked for none"):
        for _ in range(8):
            env.step(actions(1, 1, 1))


def test_rules_end_the_frame_where_asked_for(config: EnvConfig, make_config: MakeConfig) -> None:
    """A branch's forbidden choice forbids all actions with it: (0, 2) and (1, 2) of 2 x 3."""
    obedient = make_config(config.game, env_args='{"brain": "Counters", "masks": true}')
    assert describe_env(obedient).masked and describe_env(obedient).frame_shape == (9,)
    env = opened(obedient, [1, 2])
    frames, _ = env.reset()
    assert legal_actions(frames, 6).tolist() == [[True, True, False, True, True, False]] * 2
    frames, *_ = env.step(actions(0, 0))
    assert legal_actions(frames, 6).all()


def test_pictures_that_nobody_asked_for_are_not_decoded(
    config: EnvConfig, monkeypatch: pytest.MonkeyPatch, make_config: MakeConfig
) -> None:
    """A build may send pictures that only its camera's users need: here they cannot be decoded."""
    monkeypatch.setenv("UNITY_BLIND", "1")
    env = opened(config, [1, 2, 3])
    env.reset()
    frames, *_, infos = env.step(actions(1, 1, 1))
    assert frames[:, 1].tolist() == [1, 1, 1] and not infos["interrupted"].any()
    told = json.loads(config.env_args or "{}")
    seeing = make_config(config.game, env_args=json.dumps({**told, "camera": True}))
    with pytest.raises(EnvFailure, match="picture"):
        opened(seeing, [1, 2, 3]).reset()


@pytest.mark.parametrize("package", ["2.0.1", "3.0.0"])
def test_a_camera_is_observed_in_either_layout(
    config: EnvConfig, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    """Body 0 sends PNGs, the others floats; the package of 3.0 puts the channels first."""
    monkeypatch.setenv("UNITY_PACKAGE", package)
    seeing = '"brain": "Counters", "camera": true'
    env = opened(make_config(config.game, env_args=f'{{{seeing}, "speed": 2}}'), [1, 2])
    env.reset()
    assert env.step(actions(0, 0))[0].tolist() == np.full((2, 4, 6), 2).tolist()
    env = opened(make_config(config.game, env_args=f'{{{seeing}, "masks": true}}'), [1, 2])
    frames, _ = env.reset()
    assert frames.shape == (2, 4, 6, 2) and not legal_actions(frames, 6)[:, 2].any()


def test_a_brain_of_numbers_is_played(config: EnvConfig, make_config: MakeConfig) -> None:
    idle = make_config(config.game, env_args='{"brain": "Adder"}')
    description = describe_env(idle)
    assert (description.num_actions, description.action_low) == (None, (-1.0, -1.0))
    env = opened(idle, [1])
    env.reset()
    frames, rewards, *_ = env.step(np.array([[0.5, 0.25]], np.float32))
    assert frames.tolist() == [[0.75]] and rewards.tolist() == [0.75]


def test_several_brains_are_played_at_once_each_by_a_thread(
    config: EnvConfig, make_config: MakeConfig
) -> None:
    """Each by a thread: all see the same scenes; each begins once, and one plays on after the other."""
    adder = make_config(config.game, env_args='{"brain": "Adder"}', max_episode_steps=2)
    scenes = share_env([config, adder], [1, 2])
    seen: dict[int, list[Any]] = {0: [], 1: []}

    def play(seat: int, env: SeatView) -> None:
        frames, _ = env.reset()
        with pytest.raises(EnvError, match="cannot begin anew by itself"):
            env.reset()
        chosen = np.full(6, 4) if seat == 0 else np.full((2, 2), 0.25, np.float32)
        for _ in range(4 + seat):
            frames, rewards, terminated, truncated, _ = env.step(chosen)
            seen[seat].append((frames.tolist(), rewards.tolist(), terminated.any(), truncated.any()))

    play_seats(scenes, play)
    assert seen[0][0][:2] == ([[0, 1, 4]] * 6, [0.5] * 6) and seen[0][3][2]
    assert seen[1][0] == ([[0.5]] * 2, [0.5] * 2, False, False)
    assert [step[3] for step in seen[1]] == [False, True, False, False, True], "its own limit of steps alone"
    left = [shared.scene.bodies["Counters"].numbers[2, 2] for shared in scenes._shared]
    assert left == [0, 0], "in the last step nobody played them any more"


def test_a_player_that_dies_ends_the_episodes_of_all_brains(
    config: EnvConfig, make_config: MakeConfig, build: Path
) -> None:
    adder = make_config(config.game, env_args='{"brain": "Adder"}')
    scenes = share_env([config, adder], [1])
    ends: dict[int, list[bool]] = {0: [], 1: []}

    def play(seat: int, env: SeatView) -> None:
        env.reset()
        for number in range(3):
            if number == 1 and seat == 0:
                (build.parent / "fault").write_text("die")
            *_, truncated, _ = env.step(np.zeros(3, int) if seat == 0 else np.zeros((1, 2), np.float32))
            ends[seat].append(bool(truncated.all()))

    play_seats(scenes, play)
    assert ends == {0: [False, True, False], 1: [False, True, False]}


def test_who_started_the_player_again_may_leave(
    config: EnvConfig, make_config: MakeConfig, build: Path
) -> None:
    """A player ends with the thread that started it; seat 0 comes last, so it is its thread."""
    adder = make_config(config.game, env_args='{"brain": "Adder"}')
    scenes = share_env([config, adder], [1])
    truncations = list[bool]()

    def play(seat: int, env: SeatView) -> None:
        env.reset()
        if seat == 0:
            (build.parent / "fault").write_text("die")
        for _ in range(4 if seat == 0 else 8):
            if seat == 0:  # comes last, and so takes the step
                until(lambda: scenes._shared[0].barrier._waiting == {1}, lambda: "seat 1 has not come")
            *_, truncated, _ = env.step(np.zeros(3, int) if seat == 0 else np.zeros((1, 2), np.float32))
            if seat == 1:
                truncations.append(bool(truncated[0]))

    play_seats(scenes, play)
    assert truncations == [True, *[False] * 7]


def test_a_process_that_closes_nothing_ends_nevertheless(config: EnvConfig) -> None:
    play = f"""
from envs.config import EnvConfig
from envs.registry import make_env
make_env(EnvConfig({config.game!r}, 1, 0.0, False, 300.0, False, env_args={config.env_args!r}), [1]).reset()
raise SystemExit(3)
"""
    assert subprocess.run([sys.executable, "-c", play], cwd=ROOT, timeout=60, check=False).returncode == 3


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ('{"brain": "Counters"}', "of a brain of its own"),
        ("", "of a brain of its own"),
        ('{"brain": "Adder", "speed": 2}', "other parameters of the scene"),
    ],
)
def test_brains_that_do_not_fit_together_are_one_sentence(
    config: EnvConfig, make_config: MakeConfig, second: str, sentence: str
) -> None:
    with pytest.raises(EnvError, match=sentence):
        share_env([config, make_config(config.game, env_args=second)], [1])


@pytest.mark.parametrize("fault", ["die", "hang"])
def test_a_player_that_dies_or_hangs_is_started_again(env: SeededVectorEnv, build: Path, fault: str) -> None:
    env.reset()
    env.step(actions(1, 1, 1))
    (build.parent / "fault").write_text(fault)
    _, _, _, truncated, infos = env.step(actions(1, 1, 1))
    assert truncated.tolist() == [True, True, True] == infos["interrupted"].tolist()
    frames, rewards, _, truncated, _ = env.step(actions(1, 1, 1))
    assert frames[:, :2].tolist() == [[0, 0]] * 3 and not truncated.any() and rewards[0] == 0


def test_a_player_that_begins_with_fewer_bodies_is_started_again(
    env: SeededVectorEnv, build: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says twice what it has: when it is asked, and when its scene is reset."""
    env.reset()
    (build.parent / "fault").write_text("die fewer fewer")
    env.step(actions(1, 1, 1))
    frames, *_ = env.step(actions(1, 1, 1))
    assert frames[:, :2].tolist() == [[0, 0]] * 3
    assert "begins with 2 bodies of Counters; it is started again" in caplog.text


def test_another_version_is_given_up_with_its_reason(config: EnvConfig, build: Path) -> None:
    (build.parent / "fault").write_text("version " * 5)
    with pytest.raises(EnvFailure, match=r"failed 5 times in a row: .*speaks version 9\.0\.0"):
        make_env(config, [1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ('{"brain": "Counters", "actions": 7}', "obey 6 actions, no more"),
        ('{"brain": "Adder", "masks": true}', "are numbers"),
        ('{"brain": "Adder", "camera": true}', "have no camera"),
        ("", "has the brains Counters, Adder: choose one"),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    config: EnvConfig, make_config: MakeConfig, arguments: str, sentence: str
) -> None:
    with pytest.raises(EnvError, match=sentence):
        make_env(make_config(config.game, env_args=arguments), [1])


OFFICIAL = [  # the newest for Pythons above 3.10; 1.1.0 speaks the same version of the protocol
    "mlagents-envs==0.28.0",
    "protobuf==3.20.3",
    "grpcio==1.85.1",
    f"numpy=={np.__version__}",
    *["pillow", "cloudpickle", "pyyaml", "filelock", "setuptools<81", "typing_extensions"],
]


@pytest.fixture
def official(tmp_path: Path) -> Path:
    """A Python that has mlagents-envs, which cannot live beside what this project needs."""
    folder = tmp_path / "official"
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, *OFFICIAL], check=True)
    return folder / "bin" / "python"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.slow
def test_mlagents_own_side_sees_the_same(build: Path, official: Path, make_config: MakeConfig) -> None:
    """The same stand-in, the same actions, 11 rounds: numbers, pictures, rewards, ends and rules."""
    program = ROOT / "tests" / "envs" / "mlagents_play.py"
    play = [str(official), str(program), str(build), str(free_port()), "11"]
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    printed = subprocess.run(play, check=True, capture_output=True, text=True, env=environment).stdout
    theirs = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    told = '"brain": "Counters", "masks": true, "speed": 1.0'
    env = opened(make_config(f"unity:{build}", env_args=f"{{{told}}}"), [1, 2, 3])
    seen = opened(make_config(f"unity:{build}", env_args=f'{{{told}, "camera": true}}'), [1, 2, 3])
    bodies = list(theirs[0]["asks"])  # by row
    frames, pictures = env.reset()[0], seen.reset()[0]
    for number, said in enumerate(theirs):
        forbidden = np.array(said["forbidden"][1])
        for row, body in enumerate(bodies):
            if body not in said["asks"]:
                bodies[row] = body = next(new for new in said["asks"] if new not in bodies)
            numbers, brightness, _ = said["asks"][body]
            place = list(said["asks"]).index(body)
            assert frames[row].tolist() == [*numbers, *(~np.tile(forbidden[place], 2)).tolist()]
            assert pictures[row, ..., 0].sum() == brightness
        if number + 1 == len(theirs):
            break
        chosen = np.full(3, 3 + number % 2)
        frames, rewards, terminated, truncated, _ = env.step(chosen)
        pictures = seen.step(chosen)[0]
        after = theirs[number + 1]
        for row, body in enumerate(bodies):
            numbers, brightness, reward, *interrupted = after["ends"].get(body) or after["asks"][body]
            assert (frames[row, :3].tolist(), rewards[row]) == (numbers, reward)
            assert pictures[row, ..., 0].sum() == brightness
            assert [terminated[row], truncated[row]] == [interrupted == [False], interrupted == [True]]
        if (ended := terminated | truncated).any():
            seeds, options = [1] * int(ended.sum()), {"reset_mask": ended}
            frames = env.reset(seed=seeds, options=options)[0]
            pictures = seen.reset(seed=seeds, options=options)[0]
    assert any(said["ends"] for said in theirs)
