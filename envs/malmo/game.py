"""Malmo's missions as one game: each episode on another free client, in an arena drawn from its seed.

Minecraft says that a mission is done, not why. But a mission has one reward, for touching the gold, and no
other end than that touch and the end of its time: done with the gold is a termination, done without it a
truncation. An episode that breaks off because its client crashed is truncated too, with the last frame seen.
"""

import time
from uuid import uuid4

import numpy as np

from envs.config import EnvConfig
from envs.malmo.arena import draw_arena
from envs.malmo.clients import Clients
from envs.malmo.connection import ClientFailed
from envs.malmo.limits import Limits
from envs.malmo.mission import Mission
from envs.malmo.mission_init import GOAL_REWARD, mission_init
from envs.solo import Picture, SoloStep, Steering, frame_space


class MalmoGame:
    """One environment; between its episodes it holds no client.

    Args:
        config: the settings; `action_repeat` is the pictures per step, for which commands are repeated.
        number: of the mission, 1 to 3.
        clients: where missions can run.
        limits: on the time of everything.
    """

    def __init__(self, config: EnvConfig, number: int, clients: Clients, limits: Limits) -> None:
        self._config, self._number, self._clients, self._limits = config, number, clients, limits
        self._shape = frame_space(config).shape
        self._mission: Mission | None = None  # that runs

    def begin(self, seed: int) -> Picture:
        """Starts a mission and returns its first frame [h, w, 3]; EnvError if no client can be had."""
        self._end(running=True)
        self._gold = False
        self._mission = self._started(seed)
        self._frame = self._upright(self._mission.first_picture)
        return self._frame

    def step(self, action: Steering) -> SoloStep:
        """Sends turn and move, and takes `action_repeat` pictures."""
        turn, move = action.tolist()
        reward, over = self._play(f"move {move:.4f}\nturn {turn:.4f}".encode())
        self._gold = self._gold or reward >= GOAL_REWARD
        return SoloStep(
            self._frame,
            reward or self._config.no_reward_default,
            terminated=over and self._gold,
            truncated=over and not self._gold,
        )

    def close(self) -> None:
        """Ends a running mission."""
        self._end(running=True)

    def _started(self, seed: int) -> Mission:
        experiment = uuid4().hex
        message = mission_init(self._config, draw_arena(self._number, seed), experiment)
        token = f"{experiment}:0:1:1".encode()
        began = time.monotonic()
        while True:
            claim = self._clients.claim(began)
            try:
                return Mission(claim, message, token, int(np.prod(self._shape)), self._limits)
            except ClientFailed:
                continue  # with the next one

    def _play(self, commands: bytes) -> tuple[float, bool]:
        """Returns the rewards of this step and whether the mission is over."""
        assert self._mission is not None, "a mission runs"
        reward = 0.0
        for _ in range(self._config.action_repeat):
            try:
                answer = self._mission.step(commands)
            except ClientFailed:
                self._mission = None
                return reward, True
            reward += answer.reward
            if answer.picture:
                self._frame = self._upright(answer.picture)
            if answer.done:
                self._end(running=False)
                return reward, True
        return reward, False

    def _end(self, running: bool) -> None:
        if self._mission is not None:
            self._mission.end(running)
            self._mission = None

    def _upright(self, picture: bytes) -> Picture:
        return np.frombuffer(picture, np.uint8).reshape(self._shape)[::-1].copy()
