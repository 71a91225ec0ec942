"""Microsoft's own client, malmoenv 0.0.8 as it is, plays what ours plays, against the same server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from typing import Any, NamedTuple
from xml.etree import ElementTree

import malmoenv
import numpy as np
import pytest
from malmoenv.core import StringActionSpace

from envs.config import EnvConfig
from envs.malmo import MalmoVector
from tests.envs import malmo_play
from tests.envs.malmo_play import SMALL
from tests.envs.malmo_server import Faults, Server
from tests.envs.malmo_world import World

NAMESPACE = "http://ProjectMalmo.microsoft.com"
IN_TURN = [(0.3, 1.0), (-0.25, 0.37), (1.0, -1.0), (0.0, 0.0), (-0.123456, 0.98765)]  # turn, move

locks_of_our_own = malmo_play.locks_of_our_own
Steering = Callable[[World], tuple[float, float]]


class Played(NamedTuple):
    """An episode as a client saw it, and what the server was told."""

    frames: list[np.ndarray]
    rewards: list[float]
    dones: list[bool]
    commands: list[str]  # one for each step
    messages: list[bytes]


def dance() -> Steering:
    """Takes no heed of the world and finds nothing."""
    actions = cycle(IN_TURN)
    return lambda _: next(actions)


def play_ours(server: Server, config: EnvConfig, steer: Steering) -> Played:
    env = MalmoVector(config, [5])
    frames, rewards, dones, commands = [env.reset()[0][0]], [], [False], []
    while not dones[-1]:
        assert server.world is not None
        action = np.array([steer(server.world)], np.float32)
        stepped, reward, terminated, truncated, _ = env.step(action)
        frames.append(stepped[0])
        rewards.append(float(reward[0]))
        dones.append(bool(terminated[0] or truncated[0]))
        commands.append(server.messages[-1].decode().removeprefix("<Step3>").removesuffix("</Step3 >"))
    env.close()
    return Played(frames, rewards, dones, commands, server.messages)


def play_theirs(server: Server, ours: Played, step_options: int) -> Played:
    """Plays the mission that ours asked for, with the commands that ours sent."""
    message = next(each for each in ours.messages if each.startswith(b"<MissionInit")).decode()
    mission = message[message.index("<Mission>") : message.index("</Mission>") + len("</Mission>")]
    env: Any = malmoenv.make()
    env.init(
        mission.replace("<Mission>", f'<Mission xmlns="{NAMESPACE}">'),
        server.port,
        server="127.0.0.1",
        exp_uid=ElementTree.fromstring(message).findtext(f"{{{NAMESPACE}}}ExperimentUID"),
        step_options=step_options,
        action_space=StringActionSpace(),
        reshape=True,
    )
    env.reset()
    frames, rewards, dones = [env.render()], [], [False]
    for step in ours.commands:
        _, reward, done, _ = env.step(step)
        frames.append(env.render())
        rewards.append(reward)
        dones.append(done)
    env.client_socket.close()
    return Played(frames, rewards, dones, ours.commands, server.messages)


def canonical(messages: list[bytes]) -> list[str]:
    """Returns the messages with XML in one form, whoever wrote it."""
    texts = [message.decode() for message in messages]
    return [
        ElementTree.canonicalize(text, strip_text=True) if text.startswith("<MissionInit") else text
        for text in texts
    ]


@pytest.fixture
def config(make_config: Callable[..., EnvConfig]) -> EnvConfig:
    return make_config("malmo:1", **SMALL | {"episode_time_sec": 4.0})


@pytest.mark.parametrize("step_options", [0, 3])
@pytest.mark.parametrize(
    ("steer", "score", "faults"),
    [
        (dance(), 0.0, Faults()),
        (World.way_to_gold, 1.0, Faults()),
        (World.way_to_gold, 1.0, Faults(late_pictures=2, lost_pictures=2)),
    ],
    ids=["time-out", "gold", "asking again"],
)
def test_both_clients_see_the_same(
    steer: Steering, score: float, faults: Faults, step_options: int, config: EnvConfig
) -> None:
    with Server(replace(faults)) as one, Server(replace(faults)) as other:
        ours = play_ours(one, replace(config, malmo_ports=f"127.0.0.1:{one.port}"), steer)
        theirs = play_theirs(other, ours, step_options)
    assert all(np.array_equal(a, b) for a, b in zip(ours.frames, theirs.frames, strict=True))
    assert ours.rewards == theirs.rewards
    assert ours.dones == theirs.dones
    assert sum(ours.rewards) == score
    assert len({frame.tobytes() for frame in ours.frames}) > 3
    if step_options == 3:  # as ours
        assert canonical(ours.messages) == canonical(theirs.messages)
