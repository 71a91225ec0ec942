#!/usr/bin/env python3
"""Stands in for a Unity player of ML-Agents' present protocol: bodies that count, the same calls over gRPC.

Three bodies of the behavior Counters have the numbers (episode, steps in it) and (action last taken,), a grey
camera as bright as their steps, and two branches of 2 and 3 actions, of which the last of the second is
forbidden in an episode's first step. A body asks for an action every fifth tick and gains 0.5 with each. Its
episode ends with -1, three ticks after it has asked the (4 + body)th time; by a limit of steps for body 2.
One body of the behavior Adder takes two numbers, and is shown and paid their sum; its episode has no end.

What differs stands in environment variables: UNITY_STAGGER lets bodies ask at different ticks after the
first, with UNITY_BLIND no PNG can be decoded, UNITY_PACKAGE is the version of Unity's package, and
UNITY_FAULT is as in unity_build.py.
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
import time
from itertools import count
from typing import Any
from uuid import UUID

import cv2
import grpc
import numpy as np

from envs.unity.protocols.messages import SERVICE, Message
from tests.envs.unity_build import fault

BRANCHES = 2, 3
PERIOD = 5
PARAMETERS = UUID("534c891e-810f-11ea-a9d0-822485860400")
RESET = 1


class Body:
    """One of the scene, and what it says."""

    ids = count(100)

    def __init__(self, number: int) -> None:
        self.number, self.episode = number, -1
        self.is_gone = False
        self.offset = number if os.environ.get("UNITY_STAGGER") else 0
        self.begin()

    def begin(self) -> None:
        """A new episode."""
        self.id, self.steps, self.action, self.acts = next(self.ids), 0.0, [-1, -1], False
        self.episode += 1

    def tick(self, tick: int, speed: float, infos: Any) -> bool:
        """Adds what the body says; whether it asks for an action."""
        if self.is_gone:
            return False
        phase = (tick - self.offset) % PERIOD if tick else 0
        if phase == 3 and self.acts and self.steps + speed >= 4 + self.number:
            self.steps += speed
            self.say(infos, -1.0, done=True)
            self.is_gone = fault("leave")
            self.begin()
        elif phase == 0:
            self.steps += speed if self.acts else 0.0
            self.say(infos, 0.5 if self.acts else 0.0, done=False)
            return True
        return False

    def say(self, infos: Any, reward: float, done: bool) -> None:
        """Adds an info."""
        info = infos.add(reward=reward, done=done, id=self.id, group_reward=0.25 if done else 0.0)
        info.max_step_reached = done and self.number == 2
        first = not self.steps
        info.action_mask.extend([False, False, False, False, first])
        info.observations.add(shape=[2]).floats.data.extend([self.episode, self.steps])
        info.observations.add(shape=[1]).floats.data.append(self.action[0] * BRANCHES[1] + self.action[1])
        self.see(info)

    def see(self, info: Any) -> None:
        """Adds a picture: as a PNG that says it thrice (body 0), or as floats."""
        newer = os.environ.get("UNITY_PACKAGE", "2.0.1") >= "3"
        seen = info.observations.add(shape=[1, 4, 6] if newer else [4, 6, 1])
        if self.number > 0:
            seen.floats.data.extend([self.steps / 255] * 24)
            return
        seen.compression, picture = 1, np.full((4, 6, 3), self.steps, np.uint8)
        seen.compressed = (
            b"no PNG" if os.environ.get("UNITY_BLIND") else cv2.imencode(".png", picture)[1].tobytes()
        )
        seen.channel_mapping.extend([0, 0, 0])


class Scene:
    """The bodies, and the calls on their behalf."""

    def __init__(self, port: int) -> None:
        self.channel = grpc.insecure_channel(f"localhost:{port}")
        self.call = self.channel.unary_unary(
            f"/{SERVICE}/Exchange", Message.SerializeToString, Message.FromString
        )
        self.speed, self.announced, self.sum = 1.0, False, 0.0
        self.greet()

    def greet(self) -> None:
        """The first two calls."""
        message = Message()
        greeting = message.unity_output.initialization
        greeting.communication_version = "9.0.0" if fault("version") else "1.5.0"
        greeting.package_version = os.environ.get("UNITY_PACKAGE", "2.0.1")
        self.exchange(message)
        self.obey(self.exchange(Message()))

    def exchange(self, message: Any) -> Any:
        """What the other side answers; ends this process where it says so."""
        message.header.status = 200
        answer = self.call(message, wait_for_ready=True)
        if answer.header.status != 200:
            sys.exit(0)
        return answer.unity_input

    def obey(self, said: Any) -> None:
        """Parameters first, then the command."""
        data = said.rl_input.side_channel
        while data:
            (length,) = struct.unpack_from("<i", data, 16)
            if UUID(bytes_le=data[:16]) == PARAMETERS:
                self.set(data[20 : 20 + length])
            data = data[20 + length :]
        if said.rl_input.command == RESET:
            self.bodies, self.ticks = [Body(number) for number in range(2 if fault("fewer") else 3)], count()

    def set(self, said: bytes) -> None:
        """A parameter: its name's length and name, the kind of value, the value."""
        (length,) = struct.unpack_from("<i", said)
        assert said[4 : 4 + length] == b"speed"
        kind, self.speed = struct.unpack_from("<if", said, 4 + length)
        assert kind == 0

    def play(self) -> None:
        """Until the other side ends it."""
        while True:
            tick, message = next(self.ticks), Message()
            said = message.unity_output.rl_output
            infos = said.of_behavior.add(key="Counters").value.value
            asks = [body for body in self.bodies if body.tick(tick, self.speed, infos)]
            if tick % PERIOD == 0:
                adder = said.of_behavior.add(key="Adder").value.value.add(id=1, reward=self.sum)
                adder.observations.add(shape=[1]).floats.data.append(self.sum)
            if not infos and tick % PERIOD:
                continue
            if not self.announced and infos:
                self.announce(message.unity_output.initialization)
            self.act(self.exchange(message), asks)

    def announce(self, greeting: Any) -> None:
        """What the behaviors are."""
        self.announced = True
        counters = greeting.brain_parameters.add(name="Counters")
        counters.actions.discrete = len(BRANCHES)
        counters.actions.branches.extend(BRANCHES)
        greeting.brain_parameters.add(name="Adder").actions.continuous = 2

    def act(self, said: Any, asks: list[Body]) -> None:
        """Takes the actions of those that asked, in order."""
        if asks and said.rl_input.command != RESET:
            if fault("die"):
                os._exit(4)
            if fault("hang"):
                time.sleep(60)
        self.obey(said)
        chosen = {each.key: each.value.value for each in said.rl_input.of_behavior}
        for body, choice in zip(asks, chosen.get("Counters", ()), strict=False):
            body.action, body.acts = list(choice.discrete), True
        for choice in chosen.get("Adder", ()):
            self.sum = sum(choice.continuous)


def main() -> None:
    """Calls until told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mlagents-port", type=int)
    port = parser.parse_known_args()[0].mlagents_port
    if fault("die_at_start"):
        sys.exit(3)
    Scene(port).play()


if __name__ == "__main__":
    main()
