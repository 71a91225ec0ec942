"""Malmo's missions as games: each episode on another free client, in an arena drawn from its seed.

Minecraft reports that a mission is done, not why. But a mission has one reward, for touching the gold, and no
other end than that touch and the end of its time: done with the gold is a termination, done without it a
truncation. An episode that breaks off because its client crashed is truncated too, with the last frame seen.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from envs.config import EnvConfig, EnvError
from envs.malmo.clients import Claim, Clients, parse_addresses
from envs.malmo.connection import ClientFailed, Connection, TimeLimits
from envs.malmo.missions import GOAL_REWARD, draw_arena, mission_init
from envs.seeding import checked_seeds
from envs.solo import Picture, SoloStep, SoloVector, Steering, frame_space

Answer = TypeVar("Answer")
_LIMITS = TimeLimits()


class MalmoGame:
    """One environment; between its episodes it holds no client.

    Args:
        config: the settings; `action_repeat` is the pictures per step, for which commands are repeated.
        number: of the mission, 1 to 3.
        clients: where missions can run.
        limits: on the time of everything.
    """

    def __init__(self, config: EnvConfig, number: int, clients: Clients, limits: TimeLimits) -> None:
        self._config, self._number, self._clients, self._limits = config, number, clients, limits
        self._shape = frame_space(config).shape
        self._claim: Claim | None = None  # of the client that runs a mission

    def begin(self, seed: int) -> Picture:
        """Starts a mission and returns its first frame [h, w, 3]; EnvError if no client can be had."""
        self.close()
        self._gold_touched = False
        experiment = uuid4().hex  # the mission's name is "experiment:role:episode:agents"
        message = mission_init(self._config, draw_arena(self._number, seed), experiment)
        start = partial(self._start, message, f"{experiment}:0:1:1".encode())
        began, picture = time.monotonic(), None
        while picture is None:
            self._claim = self._clients.claim(began)
            picture = self._answer(start)
        self._frame = self._upright(picture)
        return self._frame

    def step(self, action: Steering) -> SoloStep:
        """Sends turn and move, and takes `action_repeat` pictures."""
        turn, move = action.tolist()
        send = partial(self._connection.step, f"move {move:.4f}\nturn {turn:.4f}".encode())
        reward, over = 0.0, False
        for _ in range(self._config.action_repeat):
            answer = self._answer(send)
            if answer is not None:
                reward += answer.reward
                self._frame = self._upright(answer.picture) if answer.picture else self._frame
            over = answer is None or answer.done
            if over:
                self._leave(running=False)
                break
        self._gold_touched = self._gold_touched or reward >= GOAL_REWARD
        return SoloStep(
            self._frame,
            reward or self._config.no_reward_default,
            terminated=over and self._gold_touched,
            truncated=over and not self._gold_touched,
        )

    def close(self) -> None:
        """Ends a running mission."""
        self._leave(running=True)

    def _start(self, message: bytes, token: bytes) -> bytes:
        assert self._claim is not None, "a client was claimed"
        self._connection = Connection(self._claim.address, int(np.prod(self._shape)), self._limits)
        picture = self._connection.start(message, token)
        self._clients.report_healthy(self._claim)
        return picture

    def _leave(self, running: bool) -> None:
        """Releases the client, if one is held, after telling Minecraft to quit a mission that still runs."""
        if self._claim is not None and running:
            self._answer(self._connection.quit)
        if self._claim is not None:
            self._answer(self._connection.close)
        if self._claim is not None:
            self._claim.lock.release()
            self._claim = None

    def _answer(self, request: Callable[[], Answer]) -> Answer | None:
        """Minecraft's answer; None if the client failed, which is reported and releases it."""
        try:
            return request()
        except ClientFailed as failure:
            assert self._claim is not None, "a request needs a client"
            self._clients.report_crash(self._claim, failure)
            self._claim = None
            return None

    def _upright(self, picture: bytes) -> Picture:
        return np.frombuffer(picture, np.uint8).reshape(self._shape)[::-1].copy()


class MalmoVector(SoloVector):
    """N environments, each on its own client of `config.malmo_ports`, which other actors may share.

    Raises:
        EnvError: there are fewer clients than environments, or their names are wrong.
    """

    def __init__(
        self, config: EnvConfig, mission: int, seeds: Sequence[int], limits: TimeLimits = _LIMITS
    ) -> None:
        addresses = parse_addresses(config.malmo_ports)
        if len(addresses) < len(checked_seeds(seeds, len(seeds))):
            raise EnvError(
                f"{len(seeds)} environments at once need as many Minecraft clients, "
                f"but --malmo-ports names {config.malmo_ports} only."
            )
        clients = Clients(addresses, limits)
        games = [MalmoGame(config, mission, clients, limits) for _ in seeds]
        self._threads = ThreadPoolExecutor(len(games), "malmo")
        super().__init__(config, games, seeds, self._threads.map)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the missions."""
        super().close_extras(**kwargs)
        self._threads.shutdown()
