"""The family of Malmo's missions, for those who have Minecraft (docs/malmo.md): "malmo:1" to "malmo:3".

Each episode runs on another free client, in an arena drawn from its seed. Minecraft reports that a mission is
done, not why. But a mission has one reward, for touching the gold, and no other end than that touch and the
end of its time: done with the gold is a termination, done without it a truncation. An episode that breaks off
because its client crashed is truncated too, with the last frame seen.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from envs.config import EnvConfig, EnvError
from envs.malmo.clients import Clients, parse_addresses
from envs.malmo.connection import ClientAddress, Connection, MalmoLimits
from envs.malmo.missions import GOAL_REWARD, ROOMS, draw_arena, mission_init
from envs.playback import Playback, Screen
from envs.registry import Family
from envs.solo import STEERING, SoloStep, SoloVector, Steering, describe, frame_space

__all__ = ["FAMILY", "MalmoVector"]

Answer = TypeVar("Answer")
_NAMES = {"malmo": "malmo:1", **{f"malmo:{mission}": f"malmo:{mission}" for mission in ROOMS}}


class MalmoGame:
    """One environment; between its episodes it holds no client.

    `config.action_repeat` is the pictures per step, for which commands are repeated.
    """

    def __init__(self, config: EnvConfig, clients: Clients, limits: MalmoLimits) -> None:
        self._config, self._clients, self._limits = config, clients, limits
        self._mission = int(config.game.removeprefix("malmo:"))
        self._shape = frame_space(config).shape
        self._client: ClientAddress | None = None  # that runs a mission
        self._connection: Connection | None = None  # to that client

    def begin(self, seed: int) -> Screen:
        """Starts a mission and returns its first frame [h, w, 3]; EnvError if no client can be had."""
        self.close()
        self._gold_touched = False
        experiment = uuid4().hex  # the mission's name is "experiment:role:episode:agents"
        message = mission_init(self._config, draw_arena(self._mission, seed), experiment)
        token, began, picture = f"{experiment}:0:1:1".encode(), time.monotonic(), None
        while picture is None:
            address = self._client = self._clients.claim(began)
            picture = self._ask(lambda client: client.start(message, token))
        self._clients.report_healthy(address)
        self._frame = self._upright(picture)
        return self._frame

    def step(self, action: Steering) -> SoloStep:
        """Sends turn and move, and takes `action_repeat` pictures."""
        turn, move = action.tolist()
        commands = f"move {move:.4f}\nturn {turn:.4f}".encode()
        total, over = 0.0, False
        for _ in range(self._config.action_repeat):
            answer = self._ask(lambda client: client.step(commands))
            picture, reward, over = answer or (b"", 0.0, True)
            total += reward
            self._frame = self._upright(picture) if picture else self._frame
            if over:
                self._leave()
                break
        self._gold_touched = self._gold_touched or total >= GOAL_REWARD
        return SoloStep(
            self._frame,
            total or self._config.no_reward_default,
            terminated=over and self._gold_touched,
            truncated=over and not self._gold_touched,
        )

    def close(self) -> None:
        """Ends a running mission."""
        self._ask(Connection.quit)
        self._leave()

    def _leave(self) -> None:
        """Releases the client, if one is held."""
        self._ask(Connection.close)
        if self._client is not None:
            self._clients.release(self._client)
            self._client = self._connection = None

    def _ask(self, request: Callable[[Connection], Answer]) -> Answer | None:
        """The client's answer; None without one, and where it failed, which is reported and releases it."""
        if self._client is None:
            return None
        try:
            if self._connection is None:
                size = int(np.prod(self._shape))
                self._connection = Connection(self._client, size, self._limits)
            return request(self._connection)
        except OSError as failure:
            if self._connection is not None:
                self._connection.abandon()
            self._clients.report_crash(self._client, failure)
            self._client = self._connection = None
            return None

    def _upright(self, picture: bytes) -> Screen:
        return np.frombuffer(picture, np.uint8).reshape(self._shape)[::-1].copy()


class MalmoVector(SoloVector):
    """N environments, each on its own client of `config.malmo_ports`, which other actors may share.

    Raises:
        EnvError: there are fewer clients than environments, or their names are wrong.
    """

    def __init__(self, config: EnvConfig, seeds: Sequence[int], limits: MalmoLimits | None = None) -> None:
        addresses, limits = parse_addresses(config.malmo_ports), limits or MalmoLimits()
        if len(addresses) < len(seeds):
            raise EnvError(
                f"{len(seeds)} environments at once need as many Minecraft clients, "
                f"but --malmo-ports names {config.malmo_ports} only."
            )
        clients = Clients(addresses, limits)
        self._threads = ThreadPoolExecutor(len(seeds), "malmo")
        games = [MalmoGame(config, clients, limits) for _ in seeds]
        super().__init__(frame_space(config), STEERING, games, seeds, self._threads.map)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the missions."""
        super().close_extras(**kwargs)
        self._threads.shutdown()


def _playback(config: EnvConfig, seed: int) -> Playback:
    raise EnvError(
        f"{config.game} cannot be filmed or replayed, since Minecraft does not repeat itself: "
        "watch Minecraft itself with --onscreen-rendering."
    )


FAMILY = Family(_NAMES.get, lambda: [*_NAMES], describe, MalmoVector, _playback)
