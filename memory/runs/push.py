"""How experience enters Redis: one atomic script that only moves bytes, named so that a push sent twice
counts once.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import redis
from numpy.typing import NDArray
from redis.exceptions import RedisError

from memory.runs.counters import FIELDS, Counters, parse_counters, parse_counts
from memory.runs.keys import Keys
from memory.server.channel import Channel
from memory.server.connection import Client, ServerFull, lacks_memory, patiently, shortage

CALL_BYTES = 1 << 18
"""Of packed data that one call of a script takes, unless a single packet is larger. The server answers nobody
else meanwhile, about 1 ms; larger calls were measured to be no faster.
"""

LOOK_EVERY_S = 0.001
"""How often is looked whether the reply has come: to look takes 0.01 ms."""

CHECKED = f"""
local counters, lease = KEYS[1], KEYS[2]
local epoch, token, actor = ARGV[1], ARGV[2], ARGV[3]
local first, last, room = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local pushed = 'pushed:' .. actor
local function answer(verdict)
  return {{verdict, redis.call('HMGET', counters, '{"', '".join(FIELDS)}')}}
end
local now = redis.call('HMGET', counters, 'epoch', pushed, 'steps', 'last_chunk')
if now[1] ~= epoch then return answer('stale epoch') end
if redis.call('GET', lease) ~= token then return answer('lost lease') end
local held, steps = tonumber(now[2] or 0), tonumber(now[3] or 0)
if last <= held then return answer('duplicate') end
local known = math.max(held - first + 1, 0)"""
"""How every script that pushes begins. `known`: how many of the packets `first` to `last` it skips, since an
earlier call brought them; the arguments of the packets begin at ARGV[7].

A script that fails keeps what it has written. What can fail must come before what cannot be done twice, and
the counters last, in one command: a push that failed is then sent again as if nothing had happened. Memory
and disk can only be lacking at the first command that writes.
"""

_PUSH = f"""{CHECKED}
local chunks, priorities, arrivals = KEYS[3], KEYS[4], KEYS[5]
local id = tonumber(now[4] or 0)
for i = 7 + 3 * known, #ARGV, 3 do
  local transitions, chunk, leaves = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  id, steps = id + 1, steps + transitions
  redis.call('HSET', chunks, string.format('%d', id), chunk)
  redis.call('HDEL', chunks, string.format('%d', id - room))
  redis.call('HSET', priorities, (id - 1) % room, struct.pack('<I8', id) .. leaves)
  redis.call('XADD', arrivals, 'MAXLEN', '~', room, string.format('%d-0', id), 'leaves', leaves)
end
redis.call('HSET', counters, 'last_chunk', id, 'steps', steps, pushed, last)
return answer('accepted')
"""
"""Lua reads every byte of each string that it makes: chunks are stored as they come, nothing before them."""


class StaleEpoch(RuntimeError):
    """The learner has begun anew since this process last looked: read the settings again."""


class LostLease(RuntimeError):
    """Another process holds this role now, or the lease ran out: stop writing."""


class Sendable(Protocol):
    """What all packets have."""

    @property
    def data(self) -> bytes:
        """What is stored."""

    @property
    def transitions(self) -> int:
        """What T_actors grows by."""


class Packet(NamedTuple):
    """One chunk in flight."""

    data: bytes
    leaves: NDArray[np.float32]  # [L], 0 beyond the chunk's transitions
    transitions: int


PacketT = TypeVar("PacketT", bound=Sendable)


class Pusher(ABC, Generic[PacketT]):
    """Pushes an actor's packets, all of a vector step in one call of a script; sending again after a lost
    reply is safe.
    """

    waits = False
    """Whether the actor may not go on before its packets are stored."""

    def __init__(
        self,
        client: Client,
        keys: Keys,
        script: str,
        names: Sequence[str],
        room: int,
        actor: int,
        lease_token: str,
        epoch: int,
        patience_s: float,
    ) -> None:
        """`script` begins with CHECKED and gets the keys `names` behind those of counters and lease, epoch,
        token, actor, numbers of the first and last packet, `room` (how many packets there is room for), then
        `_arguments` of every packet.
        `patience_s`: how long to try again while the server is away.
        """
        self._client = client
        self._script, self._sha = script, str(client.script_load(script))
        self._names = [keys.counters, keys.actor_lease(actor), *names]
        self._room = room
        self._actor = actor
        self._token = lease_token
        self._patience_s = patience_s
        self.sequence = parse_counts(client.hmget(keys.counters, [f"pushed:{actor}"]))[0]
        self.epoch = epoch

    @abstractmethod
    def _arguments(self, packet: PacketT) -> list[bytes | int]:
        """What the script needs of a packet."""

    def push(self, packets: Sequence[PacketT], stopped: Callable[[], bool] = lambda: False) -> Counters:
        """Store all `packets`, at least one; returns the run's counters after the last one.

        Raises StaleEpoch (set `epoch` and push the same packets again: those that were accepted do not count
        twice) or LostLease; redis errors once patience is over.
        """
        first = self.sequence + 1
        for portion in portions(packets):
            send = partial(self._send, first, portion)
            verdict, values = patiently(send, self._patience_s, "Redis", stopped)
            if verdict == b"stale epoch":
                raise StaleEpoch(f"Epoch {self.epoch} is over.")
            if verdict == b"lost lease":
                raise LostLease(f"Actor {self._actor} no longer holds its lease.")
            first += len(portion)
        self.sequence = first - 1
        return parse_counters(values)

    def _send(self, first: int, packets: Sequence[PacketT]) -> Any:
        """The script's verdict and the counters."""
        call = self.call(first, packets)
        try:
            return self._client.evalsha(*call)
        except redis.exceptions.NoScriptError:
            self._client.script_load(self._script)
            return self._client.evalsha(*call)
        except redis.exceptions.ResponseError as error:
            if not lacks_memory(error):
                raise
            wanted = sum(len(packet.data) for packet in packets)
            raise ServerFull(shortage(self._client, wanted)) from error

    def call(self, first: int, packets: Sequence[PacketT]) -> tuple[Any, ...]:
        """What EVALSHA is given to store a portion whose first packet has this number; the answer is the
        script's verdict and the counters.
        """
        named = [self.epoch, self._token, self._actor, first, first + len(packets) - 1, self._room]
        arguments = [argument for packet in packets for argument in self._arguments(packet)]
        return self._sha, len(self._names), *self._names, *named, *arguments


def portions(packets: Sequence[PacketT]) -> Iterator[list[PacketT]]:
    """As many packets at a time as one call takes."""
    portion, size = list[PacketT](), 0
    for packet in packets:
        if portion and size + len(packet.data) > CALL_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(packet)
        size += len(packet.data)
    yield portion


class ChunkPusher(Pusher[Packet]):
    """Pushes chunks into the ring of a replay."""

    def __init__(
        self,
        client: Client,
        keys: Keys,
        actor: int,
        lease_token: str,
        epoch: int,
        slots: int,
        patience_s: float,
    ) -> None:
        """`slots`: chunks the ring holds."""
        names = [keys.chunks, keys.priorities, keys.arrivals]
        super().__init__(client, keys, _PUSH, names, slots, actor, lease_token, epoch, patience_s)

    def _arguments(self, packet: Packet) -> list[bytes | int]:
        return [packet.transitions, packet.data, packet.leaves.tobytes()]


class PushAhead(Generic[PacketT]):
    """Sends one call of a pusher at a time; whatever becomes of it, the pusher can push the same again."""

    def __init__(self, client: Client, pusher: Pusher[PacketT]) -> None:
        self._client, self._pusher = client, pusher
        self._unsettled: list[PacketT] = []
        self._in_flight = 0  # of the unsettled ones
        self._looked_at = 0.0

    def send(self, packets: Sequence[PacketT]) -> None:
        """Have `packets`, at least one, stored. Raises RuntimeError where others are not settled."""
        if self._unsettled:
            raise RuntimeError(f"{len(self._unsettled)} packets are not settled.")
        self._unsettled, portion = list(packets), next(portions(packets))
        call = self._pusher.call(self._pusher.sequence + 1, portion)
        with suppress(RedisError):  # `settle` pushes them then
            self._channel.send([("EVALSHA", *call)])
            self._in_flight, self._looked_at = len(portion), time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether there is something to settle, and no reply to wait for."""
        if not self._in_flight:
            return bool(self._unsettled)
        if (now := time.monotonic()) - self._looked_at < LOOK_EVERY_S:
            return False
        self._looked_at = now
        try:
            return self._channel.is_answered()
        except RedisError:
            self._in_flight = 0
            return True

    def settle(self, stopped: Callable[[], bool] = lambda: False) -> Counters | None:
        """Wait until all that was sent is stored; returns the run's counters then, None if nothing was sent.

        Raises as `Pusher.push`, and may be repeated then: what is not stored is pushed again.
        """
        counters = self._reply() if self._in_flight else None
        if self._unsettled:
            counters = self._pusher.push(self._unsettled, stopped)
            self._unsettled.clear()
        return counters

    def _reply(self) -> Counters | None:
        """The counters, if the packets in flight were stored; they are settled then."""
        sent, self._in_flight = self._in_flight, 0
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
