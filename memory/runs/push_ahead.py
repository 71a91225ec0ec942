"""Packets on their way while their actor goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Generic

from redis.exceptions import RedisError

from memory.runs.counters import Counters, parse_counters
from memory.runs.push import PacketT, Pusher, portions
from memory.server.channel import Channel
from memory.server.connection import Client

LOOK_EVERY_S = 0.001
"""How often is looked whether the reply has come: to look takes 0.01 ms."""


class PushAhead(Generic[PacketT]):
    """Sends one call of a pusher at a time; whatever becomes of it, the pusher can push the same again."""

    def __init__(self, client: Client, pusher: Pusher[PacketT]) -> None:
        self._client, self._pusher = client, pusher
        self._unsettled: list[PacketT] = []
        self._on_their_way = 0  # of the unsettled ones
        self._looked_at = 0.0

    def send(self, packets: Sequence[PacketT]) -> None:
        """Have `packets`, at least one, stored. Raises RuntimeError where others are not settled."""
        if self._unsettled:
            raise RuntimeError(f"{len(self._unsettled)} packets are not settled.")
        self._unsettled, portion = list(packets), next(portions(packets))
        call = self._pusher.call(self._pusher.sequence + 1, portion)
        with suppress(RedisError):  # `settle` pushes them then
            self._channel.ask([("EVALSHA", *call)])
            self._on_their_way, self._looked_at = len(portion), time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether there is something to settle, and no reply to wait for."""
        if not self._on_their_way:
            return bool(self._unsettled)
        if (now := time.monotonic()) - self._looked_at < LOOK_EVERY_S:
            return False
        self._looked_at = now
        try:
            return self._channel.is_answered()
        except RedisError:
            self._on_their_way = 0
            return True

    def settle(self, stopped: Callable[[], bool] = lambda: False) -> Counters | None:
        """Wait until all that was sent is stored; returns the run's counters then, None if nothing was sent.

        Raises as `Pusher.push`, and may be repeated then: what is not stored is pushed again.
        """
        counters = self._reply() if self._on_their_way else None
        if self._unsettled:
            counters = self._pusher.push(self._unsettled, stopped)
            self._unsettled.clear()
        return counters

    def _reply(self) -> Counters | None:
        """The counters, if the packets on their way were stored; they are settled then."""
        sent, self._on_their_way = self._on_their_way, 0
        with suppress(RedisError):
            ((verdict, values),) = self._channel.answers(1)
            if verdict == b"accepted":
                self._pusher.sequence += sent
                del self._unsettled[:sent]
                return parse_counters(values)
        return None

    @cached_property
    def _channel(self) -> Channel:
        return Channel(self._client)
