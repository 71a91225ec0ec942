"""Our client of MalmoEnv's protocol: what it sends, what it makes of answers, what it does without one."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from envs.config import EnvError
from tests.envs import malmo_play
from tests.envs.malmo_play import IDLE, QUICK, Start, idle_until_the_end
from tests.envs.malmo_server import Faults, Server

locks_of_our_own = malmo_play.locks_of_our_own
server = malmo_play.server
start = malmo_play.start


def test_frames_are_upright(server: Server, start: Start) -> None:
    env = start(server)
    frames, _ = env.reset()
    assert frames[0, :, 0, 0].tolist() == list(range(23, -1, -1))  # red grows upwards


def test_commands_go_out_in_one_message_and_show_in_the_next_step(server: Server, start: Start) -> None:
    env = start(server)
    frames = [env.reset()[0]]
    for action in ([-0.25, 0.37], [0.0, 0.0], [0.0, 0.0]):
        frames.append(env.step(np.array([action], np.float32))[0])
    assert server.messages[-3] == b"<Step3>move 0.3700\nturn -0.2500</Step3 >"
    assert np.array_equal(frames[0], frames[1])
    assert not np.array_equal(frames[1], frames[2])
    assert np.array_equal(frames[2], frames[3])


def test_the_gold_terminates_with_its_reward(server: Server, start: Start) -> None:
    env = start(server, no_reward_default=-0.01)
    env.reset()
    assert server.world is not None
    rewards, terminated = [], np.zeros(1, np.bool_)
    while not terminated[0]:
        _, reward, terminated, truncated, _ = env.step(np.array([server.world.way_to_gold()], np.float32))
        rewards.append(float(reward[0]))
        assert not truncated[0]
    assert rewards == [-0.01] * (len(rewards) - 1) + [1.0]
    assert 3 < len(rewards) < 30


def test_a_reward_that_comes_before_the_end_still_terminates(server: Server, start: Start) -> None:
    env = start(server)
    env.reset()
    assert server.world is not None
    server.world.reward = 1.0
    assert env.step(IDLE)[1] == 1.0
    server.world.done = True
    _, rewards, terminated, truncated, _ = env.step(IDLE)
    assert (rewards[0], terminated[0], truncated[0]) == (0.0, True, False)


@pytest.mark.parametrize("blind", [False, True])
def test_the_end_of_the_time_truncates(blind: bool, start: Start) -> None:
    with Server(Faults(blind_end=blind)) as server:
        env = start(server)
        first, _ = env.reset()
        assert idle_until_the_end(env) == 31  # 30 pictures of 0.2 s, and the news of the end
        frames, rewards, terminated, truncated, _ = env.step(IDLE)
        assert (rewards[0], terminated[0], truncated[0]) == (0.0, False, False)
        assert not np.array_equal(frames, first)  # another arena
        assert idle_until_the_end(env) == 31
        assert server.missions == 2


def test_a_step_of_several_pictures_repeats_its_commands(server: Server, start: Start) -> None:
    env = start(server, action_repeat=4)
    env.reset()
    env.step(np.array([[1.0, 0.0]], np.float32))
    assert server.messages[-4:] == [b"<Step3>move 0.0000\nturn 1.0000</Step3 >"] * 4
    assert idle_until_the_end(env) == 7  # 31 pictures in all


def test_a_client_that_is_not_ready_yet_is_asked_again(start: Start) -> None:
    with Server(Faults(busy=3, late_pictures=3, lost_pictures=3)) as server:
        env = start(server)
        frames, _ = env.reset()
        assert frames.any()
        assert env.step(IDLE)[0].any()
        assert sum(message.startswith(b"<MissionInit") for message in server.messages) == 4
        assert server.messages.count(b"<Peek/>") == 4
        assert server.messages.count(b"<Step3>move 0.0000\nturn 0.0000</Step3 >") == 4


def test_slow_answers_are_waited_for(start: Start) -> None:
    with Server(Faults(seconds_per_part=0.005)) as server:  # 40 parts a picture
        env = start(server)
        env.reset()
        assert env.step(IDLE)[0].any()


def test_a_reset_in_the_middle_of_a_mission_ends_it(server: Server, start: Start) -> None:
    env = start(server)
    env.reset()
    env.step(IDLE)
    env.reset()
    assert b"<Quit/>" in server.messages
    assert server.missions == 2
    assert idle_until_the_end(env) == 31


def test_closing_ends_the_mission(server: Server, start: Start) -> None:
    env = start(server)
    env.reset()
    env.close()
    assert server.world is not None
    assert server.world.done


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        (Faults(silent=True), "gave no answer in time"),
        (Faults(seconds_per_part=0.05), "gave no answer in time"),
        (Faults(busy=10**6), "did not start the mission"),
        (Faults(late_pictures=10**6), "sent no first picture"),
        (Faults(dead_start=True), "ended the mission before its first picture"),
        (Faults(wrong_size=True), "sent a picture of 2305 bytes where 2304 were due"),
    ],
)
def test_a_client_that_cannot_start_is_named_with_its_fault(
    faults: Faults, reason: str, start: Start
) -> None:
    reply = 0.4 if "no answer" in reason else QUICK.reply
    with Server(faults) as server:
        env = start(server, limits=replace(QUICK, reply=reply, start=0.2))
        with pytest.raises(EnvError, match=f"answered at 127.0.0.1:{server.port} \\({reason}\\)"):
            env.reset()


def test_a_user_without_minecraft_is_told_so_at_once(start: Start) -> None:
    with Server() as server:
        pass  # so that nobody listens there
    env = start(server)
    began = time.monotonic()
    with pytest.raises(EnvError) as caught:
        env.reset()
    assert QUICK.connect < time.monotonic() - began < QUICK.patience
    assert str(caught.value) == (
        f"No Minecraft client answered at 127.0.0.1:{server.port} (connection refused) within 0.4 seconds: "
        f"start one with ./launchClient.sh -port {server.port} -env, or name others by --malmo-ports."
    )
