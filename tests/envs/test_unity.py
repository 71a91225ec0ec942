"""Unity's builds: a stand-in that speaks their protocol over a socket, and the real ones where asked for.

EXTRAS=unity bash scripts/setup.sh && python -m pytest -m unity
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs.config import EnvConfig, EnvError, EnvFailure
from envs.contract import SeededVectorEnv
from envs.registry import describe_env, make_env
from envs.unity import lone_brain
from envs.unity.protocols.api2 import FirstProtocol
from envs.unity.protocols.bodies import PlayerFailed, PlayerLimits
from envs.unity.shared import SharedScenes
from envs.unity.vector import UnityVector
from evaluation.evaluator import evaluate
from evaluation.policies import baseline_policy
from tests.processes import ROOT, until

MakeConfig = Callable[..., EnvConfig]
STAND_IN = ROOT / "tests" / "envs" / "unity_build.py"


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that starts the stand-in, and beside it the file that says what goes wrong."""
    program = tmp_path / "scene.x86_64"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("UNITY_FAULT", str(tmp_path / "fault"))
    return program


@pytest.fixture
def config(build: Path, make_config: MakeConfig) -> EnvConfig:
    return make_config(f"unity:{build}")


@pytest.fixture
def env(config: EnvConfig) -> Iterator[SeededVectorEnv]:
    vector = lone_brain(config, [1, 2, 3, 4], PlayerLimits(reply=1.0))
    yield vector
    vector.close()


def goes_wrong(build: Path, words: str) -> None:
    (build.parent / "fault").write_text(words)


def actions(number: int, count: int = 4) -> np.ndarray:
    return np.full(count, number)


def test_bodies_are_environments_and_take_as_many_players_as_they_need(env: SeededVectorEnv) -> None:
    frames, _ = env.reset()
    assert frames.tolist() == [[0, 0, -1]] * 4
    frames, rewards, terminated, truncated, _ = env.step(np.array([0, 1, 0, 1]))
    assert frames.tolist() == [[0, 1, 0], [0, 1, 1], [0, 1, 0], [0, 1, 1]]
    assert rewards.tolist() == [0.5] * 4 and not (terminated | truncated).any()


def test_an_end_shows_the_last_frame_seen_and_the_next_step_begins_the_next_episode(
    env: SeededVectorEnv,
) -> None:
    env.reset()
    for _ in range(3):
        env.step(actions(1))
    frames, rewards, terminated, truncated, _ = env.step(actions(1))
    assert frames[:, 1].tolist() == [3, 4, 4, 3], "bodies 0 have begun anew, and show their last frame"
    assert rewards.tolist() == [-1, 0.5, 0.5, -1]
    assert terminated.tolist() == [True, False, False, True] and not truncated.any()
    frames, rewards, terminated, _, _ = env.step(actions(1))
    assert frames[0].tolist() == [1, 1, 0], "a step of the next episode with action 0, unseen"
    assert rewards[0] == 0 and not terminated[0]
    assert terminated[1]


def test_a_row_that_is_reset_at_its_end_loses_no_step(env: SeededVectorEnv) -> None:
    env.reset()
    for _ in range(4):
        env.step(actions(1))
    frames, _ = env.reset(seed=[8], options={"reset_mask": np.array([True, False, False, False])})
    assert frames[0].tolist() == [1, 0, -1] and frames[1].tolist() == [0, 4, 1]
    frames, rewards, *_ = env.step(actions(1))
    assert frames[0].tolist() == [1, 1, 1] and rewards[0] == 0.5


def test_a_limit_of_steps_truncates_and_the_body_goes_on(
    config: EnvConfig, build: Path, make_config: MakeConfig
) -> None:
    env = make_env(make_config(config.game, max_episode_steps=2), [1])
    env.reset()
    env.step(actions(1, 1))
    frames, _, terminated, truncated, _ = env.step(actions(1, 1))
    assert truncated[0] and not terminated[0] and frames[0].tolist() == [0, 2, 1]
    frames, rewards, _, truncated, _ = env.step(actions(1, 1))
    assert frames[0].tolist() == [0, 3, 0] and rewards[0] == 0 and not truncated[0]
    env.close()


def test_a_scene_whose_time_is_over_truncates_all_its_rows(env: SeededVectorEnv, build: Path) -> None:
    env.reset()
    goes_wrong(build, "over")
    frames, _, terminated, truncated, _ = env.step(actions(1))
    assert truncated.tolist() == [True, True, True, False] and not terminated.any()
    frames, rewards, *_ = env.step(actions(1))
    assert frames[:3].tolist() == [[0, 0, -1]] * 3 and rewards.tolist() == [0, 0, 0, 0.5]


@pytest.mark.parametrize(
    ("fault", "starts", "lengths"),
    [("over", [0, 1, 2, 3, 3, 4], (4, 5, 5, 4, 5)), ("die", [0, 1, 2, 3, 3, 1, 2, 4], (4, 5, 6, 4, 4))],
)
def test_an_episode_that_the_scene_cuts_short_is_played_again(
    config: EnvConfig, build: Path, fault: str, starts: list[int], lengths: tuple[int, ...]
) -> None:
    """One that had begun with the scene counts where its time is up: it could be no longer."""

    class Trouble:
        def __init__(self) -> None:
            self.starts: list[int] = []

        def start(self, episode: int, seed: int) -> None:
            self.starts.append(episode)
            if self.starts == [0, 1, 2, 3]:
                goes_wrong(build, fault)

        def step(self, episode: int, action: object, frame: object) -> None:
            pass

    policy = baseline_policy("constant:1", describe_env(config))
    trouble = Trouble()
    evaluation = evaluate(policy, config, 5, seed=1, width=3, observer=trouble)
    assert trouble.starts == starts
    assert evaluation.lengths == lengths


@pytest.mark.parametrize("fault", ["over", "die"])
def test_a_scene_that_ends_as_a_row_begins_begins_again_with_it(
    env: SeededVectorEnv, build: Path, fault: str
) -> None:
    """Else that row would pass from one scene into another within an episode."""
    env.reset()
    for _ in range(4):
        env.step(actions(1))  # bodies 0 have died
    goes_wrong(build, fault)
    frames, _, terminated, truncated, _ = env.step(actions(1))
    assert truncated[[0, 2]].tolist() == [False, True] and frames[0].tolist() == [0, 0, -1]
    frames, rewards, terminated, truncated, _ = env.step(actions(1))
    assert frames[0].tolist() == [0, 1, 1] and rewards[0] == 0.5 and not (terminated | truncated)[0]


@pytest.mark.parametrize("fault", ["die", "hang"])
def test_a_player_that_dies_or_hangs_is_started_again(env: SeededVectorEnv, build: Path, fault: str) -> None:
    env.reset()
    env.step(actions(1))
    goes_wrong(build, f"{fault} die_at_start")
    frames, rewards, _, truncated, _ = env.step(actions(1))
    assert truncated.tolist() == [True, True, True, False] and frames[0].tolist() == [0, 1, 1]
    frames, rewards, _, truncated, _ = env.step(actions(1))
    assert frames[:3].tolist() == [[0, 0, -1]] * 3 and not truncated.any() and rewards[0] == 0


def test_one_that_always_fails_is_given_up_with_its_reason(config: EnvConfig, build: Path) -> None:
    goes_wrong(build, "version " * 5)
    with pytest.raises(EnvFailure, match=r"failed 5 times in a row: .*API-9"):
        make_env(config, [1])


def test_no_player_outlives_the_process_that_started_it(config: EnvConfig) -> None:
    play = f"""
import sys, time
from envs.config import EnvConfig
from envs.contract import SeededVectorEnv
from envs.registry import make_env
env = make_env(EnvConfig({config.game!r}, 1, 0.0, False, 300.0, False), [1])
print(env._parts[0]._scene._player._process.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", play], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        player = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{player}").exists(), lambda: "the player still runs")


@pytest.mark.parametrize("blind", ["no PNG", "empty"])
def test_pictures_that_nobody_asked_for_are_not_decoded(
    blind: str, config: EnvConfig, monkeypatch: pytest.MonkeyPatch, make_config: MakeConfig
) -> None:
    """A build may send pictures that only its camera's users need: here they cannot be decoded."""
    monkeypatch.setenv("UNITY_BLIND", blind)
    env = make_env(config, [1, 2, 3])
    env.reset()
    frames, *_, infos = env.step(actions(1, 3))
    assert frames[:, 1].tolist() == [1, 1, 1] and not infos["interrupted"].any()
    told = json.loads(config.env_args or "{}")
    seeing = make_config(config.game, env_args=json.dumps({**told, "camera": True}))
    with pytest.raises(EnvFailure, match="5 times in a row: it sends a picture"):
        make_env(seeing, [1, 2, 3]).reset()


def test_a_camera_is_observed_where_asked_for(config: EnvConfig, make_config: MakeConfig) -> None:
    seeing = make_config(config.game, env_args='{"camera": true, "actions": 3, "speed": 2}')
    description = describe_env(seeing)
    assert (description.frame_shape, description.frame_dtype) == ((4, 6), "uint8")
    assert description.num_actions == 3 and description.history_length == 4
    env = make_env(seeing, [1, 2])
    env.reset()
    frames, *_ = env.step(np.array([2, 0]))
    assert frames.tolist() == np.full((2, 4, 6), 2).tolist(), "two of its seconds a step"
    env.close()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ('{"gravity": 2}', "has no parameter gravity; it knows speed"),
        ('{"speed": "fast"}', "must be a number, which speed is not"),
        ('{"brain": "Other"}', "has the brains Counters"),
        ('{"actions": -1}', "a number"),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    config: EnvConfig, make_config: MakeConfig, arguments: str, sentence: str
) -> None:
    with pytest.raises(EnvError, match=sentence):
        make_env(make_config(config.game, env_args=arguments), [1])


def test_a_build_that_is_not_there_is_named(make_config: MakeConfig, tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="There is no program /no/build or /no/build.x86_64"):
        make_env(make_config("unity:/no/build"), [1])


def starts_once(build: Path) -> None:
    """The build's first player runs, and no other; its number is in the file `player`."""
    once = f"test -e {build.parent}/player && exit 3; echo $$ > {build.parent}/player"
    build.write_text(build.read_text().replace("exec", f"{once}\nexec"))


def test_where_a_second_player_does_not_start_the_first_one_ends(
    config: EnvConfig, build: Path, make_config: MakeConfig
) -> None:
    starts_once(build)
    named = make_config(config.game, env_args='{"brain": "Counters"}')
    for begin in (lambda: lone_brain(config, [1, 2, 3, 4]), lambda: SharedScenes([named], [1, 2])):
        with pytest.raises(EnvFailure, match="failed 5 times in a row"):
            begin()
        player = build.parent / "player"
        assert not Path(f"/proc/{int(player.read_text())}").exists()
        player.unlink()


@pytest.mark.parametrize(
    ("greeting", "state"),
    [
        (["API-2"], {}),
        ({"apiNumber": "API-2", "brainNames": 3, "brainParameters": []}, {}),
        (None, {"brain_name": "Counters"}),
        (None, {"brain_name": ["Counters"]}),
        (None, {"brain_name": "Counters", "agents": [1], "states": [0], "rewards": [0]}),
        (None, {"brain_name": "Counters", "agents": [1], "states": {}, "rewards": [0], "dones": [False]}),
    ],
)
def test_what_is_not_of_the_protocol_is_a_failure_of_the_player(greeting: Any, state: object) -> None:
    ours, theirs = socket.socketpair()
    kind = {
        "stateSize": 1,
        "actionSize": 2,
        "cameraResolutions": [],
        "stateSpaceType": 1,
        "actionSpaceType": 0,
    }
    names = {"brainNames": ["Counters"], "externalBrainNames": ["Counters"], "brainParameters": [kind]}
    whole = {"apiNumber": "API-2", "resetParameters": {}, **names}
    words = json.dumps(state).encode()
    with ours, theirs:
        theirs.sendall(json.dumps(whole if greeting is None else greeting).encode())
        with pytest.raises(PlayerFailed, match="sent a state" if greeting is None else "sent a greeting"):
            protocol = FirstProtocol(ours, PlayerLimits(reply=5.0))
            theirs.sendall(b"ready")
            speaker = threading.Timer(0.2, theirs.sendall, [struct.pack("<I", len(words)) + words])
            speaker.start()
            protocol.reset({})
    if greeting is None:
        speaker.join()


def test_a_brain_that_nobody_plays_any_more_takes_action_0() -> None:
    """Both kinds: choices, and rows of numbers."""
    ours, theirs = socket.socketpair()
    kind = {"stateSize": 1, "actionSize": 2, "cameraResolutions": [], "stateSpaceType": 1}
    greeting = {
        "apiNumber": "API-2",
        "resetParameters": {},
        "brainNames": ["Choices", "Numbers"],
        "brainParameters": [{**kind, "actionSpaceType": 0}, {**kind, "actionSpaceType": 1}],
        "externalBrainNames": ["Choices", "Numbers"],
    }
    heard: list[dict[str, Any]] = []

    def speak() -> None:
        theirs.sendall(json.dumps(greeting).encode())
        while theirs.recv(100) in (b"RESET", b"STEP"):
            theirs.sendall(b"ready")
            heard.append(json.loads(theirs.recv(10000)))
            for name in greeting["brainNames"]:
                state = {"agents": [1, 2], "states": [0, 0], "rewards": [0, 0], "dones": [False, False]}
                words = json.dumps({"brain_name": name, **state}).encode()
                theirs.sendall(struct.pack("<I", len(words)) + words)
                assert theirs.recv(100) == b"RECEIVED"
            theirs.sendall(b"False")

    speaker = threading.Thread(target=speak)
    speaker.start()
    protocol = FirstProtocol(ours, PlayerLimits(reply=5.0))
    protocol.reset({})
    protocol.step({"Choices": np.zeros(0), "Numbers": np.array([[0.5, 0.25], [1.0, 0.0]])})
    protocol.step({"Choices": np.array([1, 1]), "Numbers": np.zeros(0)})
    protocol.close()
    speaker.join()
    assert [each["action"] for each in heard[1:]] == [
        {"Choices": [0, 0], "Numbers": [0.5, 0.25, 1, 0]},
        {"Choices": [1, 1], "Numbers": [0, 0, 0, 0]},
    ]


@pytest.mark.slow
@pytest.mark.unity
@pytest.mark.parametrize(
    ("game", "bodies", "arguments"), [("3dball", 12, '{"actions": 4}'), ("gridworld", 1, "")]
)
def test_the_real_builds_play(game: str, bodies: int, arguments: str, make_config: MakeConfig) -> None:
    """Random play ends episodes within a few dozen steps in both."""
    config = make_config(f"unity:{game}", env_args=arguments)
    description = describe_env(config)
    env = make_env(config, list(range(bodies + 1)))
    assert isinstance(env, UnityVector) and len(env._parts) == 2
    frames, _ = env.reset()
    assert frames.shape == (bodies + 1, *description.frame_shape)
    generator, ends, began = np.random.default_rng(0), 0, time.monotonic()
    for _ in range(200):
        _, _, terminated, _, _ = env.step(generator.integers(4, size=bodies + 1))
        ends += int(terminated.sum())
    assert ends > bodies + 1 and time.monotonic() - began < 20
    env.close()
