"""How experience enters Redis: in calls of a script, each named so that one sent twice counts once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from redis.exceptions import RedisError

from memory.runs.counters import Counters, parse_counts
from memory.runs.scripts import PUSH_CHUNKS, Script, Sender, refuse, run_script
from memory.server.channel import Channel
from memory.server.patience import Patience
from memory.server.replies import naming_the_shortage

CALL_BYTES = 1 << 18
"""Bytes of packed data that one call of a script takes, unless a single packet is larger. The server answers
nobody else meanwhile, about 1 ms; larger calls were measured to be no faster.
"""


class Sendable(Protocol):
    """What a pusher needs of a packet."""

    @property
    def data(self) -> bytes:
        """The packed experience."""

    @property
    def arguments(self) -> list[bytes | int]:
        """The script's arguments for it, `data` included."""


class Packet(NamedTuple):
    """One chunk in flight."""

    data: bytes
    leaves: NDArray[np.float32]  # [L], 0 beyond the chunk's transitions
    transitions: int  # T_actors grows by them

    @property
    def arguments(self) -> list[bytes | int]:
        """The script's arguments for this chunk."""
        return [self.transitions, self.data, self.leaves.tobytes()]


class Pusher:
    """Pushes an actor's packets: `send`, and once the reply is there or is wanted, `settle`. Whatever became
    of a call, the same packets can be pushed again.
    """

    def __init__(
        self, sender: Sender, script: Script, names: Sequence[str], room: int, patience: Patience
    ) -> None:
        """`script` gets the keys `names` behind those of counters and lease; `room`: for so many packets."""
        self.sender, self.epoch = sender, sender.epoch
        self.unsettled: list[Sendable] = []  # sent, and not known to be stored
        self._in_flight = 0  # of the unsettled ones
        self._client, self._keys, self._actor = sender.client, sender.keys, sender.actor
        self._script, self._room, self._patience = script, room, patience
        self._names = [self._keys.counters, self._keys.actor_lease(self._actor), *names]
        held = self._client.hmget(self._keys.counters, [f"pushed:{self._actor}"])
        self.sequence = parse_counts(held)[0]

    def adopt(self, epoch: int) -> None:
        """Go on under the learner's new epoch."""
        self.epoch = epoch

    def send(self, packets: Sequence[Sendable]) -> None:
        """Have `packets` stored, and send one call of them now. RuntimeError while others are not settled."""
        if self.unsettled:
            raise RuntimeError(f"{len(self.unsettled)} packets are not settled.")
        self.unsettled, portion = list(packets), portion_of(packets)
        arguments = self._arguments(self.sequence + 1, portion)
        with suppress(RedisError):  # `settle` pushes them then
            call = "EVALSHA", self._script.sha, len(self._names), *self._names, *arguments
            self._channel.send([call])
            self._in_flight = len(portion)

    def is_answered(self) -> bool:
        """Whether `settle` need not wait for the reply to what was sent."""
        try:
            return not self._in_flight or self._channel.is_answered()
        except RedisError:
            self._in_flight = 0
            return True

    def settle(self) -> Counters | None:
        """Wait until all that was sent is stored; returns the run's counters then, None if nothing was sent.

        Raises as `push`, and may be repeated then: what is not stored is pushed again.
        """
        counters, sent, self._in_flight = None, self._in_flight, 0
        with suppress(RedisError):
            if sent:
                ((verdict, values),) = self._channel.answers(1)
                if verdict == b"accepted":
                    self.sequence += sent
                    del self.unsettled[:sent]
                    counters = Counters(*parse_counts(values))
        if self.unsettled:
            counters = self.push(self.unsettled)
            self.unsettled.clear()
        return counters

    def push(self, packets: Sequence[Sendable]) -> Counters:
        """Store all `packets`, at least one; returns the run's counters after the last one.

        Raises StaleEpoch (`adopt` and push the same packets again: those that were accepted do not count
        twice) or LostLease; redis errors once patience is over.
        """
        first, left = self.sequence + 1, packets
        while left:
            portion = portion_of(left)
            verdict, values = self._patience(self._store, first, portion)
            refuse(verdict, self._actor, self.epoch)
            first, left = first + len(portion), left[len(portion) :]
        self.sequence = first - 1
        return Counters(*parse_counts(values))

    def _store(self, first: int, packets: Sequence[Sendable]) -> Any:
        """The script's answer: whether it accepted them, and the counters."""
        with naming_the_shortage(self._client, sum(len(packet.data) for packet in packets)):
            return run_script(self._client, self._script, self._names, self._arguments(first, packets))

    def _arguments(self, first: int, packets: Sequence[Sendable]) -> list[Any]:
        """What the script is given to store a portion whose first packet has this number."""
        last = first + len(packets) - 1
        arguments: list[Any] = [self.epoch, self.sender.lease_token, self._actor, first, last, self._room]
        for packet in packets:
            arguments += packet.arguments
        return arguments

    @cached_property
    def _channel(self) -> Channel:
        return Channel(self._client)


def portion_of(packets: Sequence[Sendable]) -> Sequence[Sendable]:
    """As many of the first packets as one call takes."""
    size = 0
    for count, packet in enumerate(packets):
        size += len(packet.data)
        if count and size > CALL_BYTES:
            return packets[:count]
    return packets


class ChunkPusher(Pusher):
    """Pushes chunks into the ring of a replay."""

    def __init__(self, sender: Sender, slots: int, patience: Patience) -> None:
        """`slots`: chunks the ring holds."""
        keys = sender.keys
        super().__init__(sender, PUSH_CHUNKS, [keys.chunks, keys.priorities, keys.arrivals], slots, patience)
