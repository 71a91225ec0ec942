#!/usr/bin/env python3
"""Stands in for a Unity player: the same protocol over a real socket, with three bodies that count.

A body's numbers are (episode, steps in it, action last taken). Its episode ends after 4 + body steps with
reward -1; a step before gives 0.5. What it does wrong stands in the file UNITY_FAULT names: a word, which is
taken out of it when it happens.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import socket
import struct
import sys
import time
from pathlib import Path

import cv2
import numpy as np

BODIES = 3
CAMERA = {"width": 6, "height": 4, "blackAndWhite": True}


class Scene:
    """The bodies, and what they have learned of the world."""

    def __init__(self) -> None:
        self.speed = 1.0
        self.begin()

    def begin(self) -> None:
        """Starts all of them anew."""
        self.bodies = [[0.0, 0.0, -1.0] for _ in range(BODIES)]
        self.rewards, self.dones = [0.5] * BODIES, [False] * BODIES

    def step(self, actions: list[float]) -> None:
        """One step of every body."""
        for number, body in enumerate(self.bodies):
            body[1] += self.speed
            body[2] = actions[number]
            self.dones[number] = body[1] >= 4 + number
            self.rewards[number] = -1.0 if self.dones[number] else 0.5
            if self.dones[number]:
                body[:] = [body[0] + 1, 0.0, -1.0]

    def state(self) -> dict[str, object]:
        """As JSON says it."""
        numbers = [number for body in self.bodies for number in body]
        actions = [0.0] * BODIES
        about = {"brain_name": "Counters", "agents": [7, 9, 12], "memories": [], "actions": actions}
        return {**about, "states": numbers, "rewards": self.rewards, "dones": self.dones}

    def pictures(self) -> list[bytes]:
        """As bright as the steps of a body; with UNITY_BLIND that word, or nothing if it is `empty`."""
        if blind := os.environ.get("UNITY_BLIND"):
            return [blind.removeprefix("empty").encode()] * BODIES
        shape = CAMERA["height"], CAMERA["width"]
        return [cv2.imencode(".png", np.full(shape, body[1], np.uint8))[1].tobytes() for body in self.bodies]


def fault(word: str) -> bool:
    """Whether this is to go wrong now; once."""
    path = Path(os.environ.get("UNITY_FAULT", "/nonexistent"))
    words = path.read_text().split() if path.exists() else []
    if word not in words:
        return False
    words.remove(word)
    path.write_text(" ".join(words))
    return True


def main() -> None:
    """Connects, and answers until it is told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    port = parser.parse_known_args()[0].port
    if fault("die_at_start"):
        sys.exit(3)
    connection = socket.create_connection(("127.0.0.1", port))
    brain = {
        "stateSize": 3,
        "actionSize": 2,
        "memorySize": 0,
        "cameraResolutions": [CAMERA],
        "actionDescriptions": ["", ""],
        "actionSpaceType": 0,
        "stateSpaceType": 1,
    }
    greeting = {
        "AcademyName": "Test",
        "apiNumber": "API-9" if fault("version") else "API-2",
        "logPath": "",
        "resetParameters": {"speed": 1.0},
        "brainNames": ["Counters"],
        "brainParameters": [brain],
        "externalBrainNames": ["Counters"],
    }
    words = json.dumps(greeting).encode()
    connection.sendall(words[:50])
    time.sleep(0.05)  # TCP keeps no message together
    connection.sendall(words[50:])
    serve(connection)


def serve(connection: socket.socket) -> None:
    """Until the other side says EXIT, or is gone."""
    scene, steps = Scene(), 0
    while (request := connection.recv(100)) in (b"RESET", b"STEP"):
        connection.sendall(b"ready")
        said = json.load(io.BytesIO(connection.recv(100000)))
        if request == b"RESET":
            scene.speed = said["parameters"].get("speed", 1.0)
            scene.begin()
        else:
            steps += 1
            if fault("die"):
                sys.exit(4)
            if fault("hang"):
                time.sleep(60)
            scene.step(said["action"]["Counters"])
        over = request == b"STEP" and fault("over")
        for message in [json.dumps(scene.state()).encode(), *scene.pictures()]:
            connection.sendall(struct.pack("<I", len(message)) + message)
            assert connection.recv(100) == b"RECEIVED"
        connection.sendall(str(over).encode())


if __name__ == "__main__":
    main()
