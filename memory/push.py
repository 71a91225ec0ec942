"""How experience enters Redis: one atomic script that only moves bytes, named so that a push sent twice
counts once.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import redis
from numpy.typing import NDArray

from memory.connection import Client, ServerFull, lacks_memory, patiently, shortage
from memory.counters import FIELDS, Counters, counted, parse_counters
from memory.keys import Keys

CHUNK_ID = struct.Struct("<Q")
"""Every stored chunk and every stored row of leaves begins with the id of its chunk."""

_PUSH = """
local counters, chunks, priorities, arrivals, lease = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local epoch, token, actor, sequence, follows = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local slots, transitions, chunk, leaves = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]
local pushed = 'pushed:' .. actor
local function answer(verdict)
  return {verdict, redis.call('HMGET', counters, unpack(ARGV, 10))}
end
if redis.call('HGET', counters, 'epoch') ~= epoch then return answer('stale epoch') end
if redis.call('GET', lease) ~= token then return answer('lost lease') end
local held = tonumber(redis.call('HGET', counters, pushed) or '0')
if sequence <= held then return answer('duplicate') end
if follows == '1' and sequence > held + 1 then return answer('out of order') end
local id = redis.call('HINCRBY', counters, 'last_chunk', 1)
local slot = string.format('%d', (id - 1) % slots)
local name = struct.pack('<I8', id)
redis.call('HSET', chunks, slot, name .. chunk)
redis.call('HSET', priorities, slot, name .. leaves)
redis.call('XADD', arrivals, 'MAXLEN', slots, string.format('%d-0', id), 'leaves', leaves)
redis.call('HINCRBY', counters, 'steps', transitions)
redis.call('HSET', counters, pushed, ARGV[4])
return answer('accepted')
"""


class StaleEpoch(RuntimeError):
    """The learner has begun anew since this process last looked: read the settings again."""


class LostLease(RuntimeError):
    """Another process holds this role now, or the lease ran out: stop writing."""


class Packet(NamedTuple):
    """One chunk on its way."""

    data: bytes
    leaves: NDArray[np.float32]  # [L], 0 beyond the chunk's transitions
    transitions: int


PacketT = TypeVar("PacketT")


class Pusher(ABC, Generic[PacketT]):
    """Pushes an actor's packets, all of a vector step in one pipeline; sending again after a lost reply is
    safe.
    """

    def __init__(
        self,
        client: Client,
        keys: Keys,
        script: str,
        names: Sequence[str],
        actor: int,
        lease_token: str,
        epoch: int,
        patience_s: float,
    ) -> None:
        """`script` gets the keys `names` and epoch, token, actor, sequence, whether the last packet must be
        there already, then `_arguments` of a packet and the names of the counters to answer with. Must be: a
        pipeline goes on where one of its commands failed, and what followed would make that one look like a
        duplicate when it is sent again. `patience_s`: how long to try again while the server is away.
        """
        self._client = client
        self._script, self._sha = script, str(client.script_load(script))
        self._names = list(names)
        self._actor = actor
        self._token = lease_token
        self._patience_s = patience_s
        self.sequence = counted(client.hget(keys.counters, f"pushed:{actor}"))
        self.epoch = epoch

    @abstractmethod
    def _arguments(self, packet: PacketT) -> list[bytes | int]:
        """What the script needs of a packet."""

    def push(self, packets: Sequence[PacketT], stopped: Callable[[], bool] = lambda: False) -> Counters:
        """Store all `packets`; returns the run's counters after the last one.

        Raises StaleEpoch (set `epoch` and push the same packets again: those that were accepted do not count
        twice) or LostLease; redis errors once patience is over.
        """
        replies = patiently(lambda: self._send(packets), self._patience_s, "Redis", stopped)
        for verdict, _ in replies:
            if verdict == b"stale epoch":
                raise StaleEpoch(f"Epoch {self.epoch} is over.")
            if verdict == b"lost lease":
                raise LostLease(f"Actor {self._actor} no longer holds its lease.")
        self.sequence += len(packets)
        return parse_counters(replies[-1][1])

    def _send(self, packets: Sequence[PacketT]) -> list[Any]:
        try:
            return self._pipeline(packets)
        except redis.exceptions.NoScriptError:
            self._client.script_load(self._script)
            return self._pipeline(packets)
        except redis.exceptions.ResponseError as error:
            if not lacks_memory(error):
                raise
            arguments = (argument for packet in packets for argument in self._arguments(packet))
            wanted = sum(len(argument) for argument in arguments if isinstance(argument, bytes))
            raise ServerFull(shortage(self._client, wanted)) from error

    def _pipeline(self, packets: Sequence[PacketT]) -> list[Any]:
        with self._client.pipeline(transaction=False) as pipeline:
            for sequence, packet in enumerate(packets, self.sequence + 1):
                follows = int(sequence > self.sequence + 1)  # the first may follow some that a server forgot
                named = [self.epoch, self._token, self._actor, sequence, follows]
                arguments = [*self._names, *named, *self._arguments(packet), *FIELDS]
                pipeline.evalsha(self._sha, len(self._names), *arguments)
            return list(pipeline.execute())


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
        names = [keys.counters, keys.chunks, keys.priorities, keys.arrivals, keys.actor_lease(actor)]
        super().__init__(client, keys, _PUSH, names, actor, lease_token, epoch, patience_s)
        self._slots = slots

    def _arguments(self, packet: Packet) -> list[bytes | int]:
        return [self._slots, packet.transitions, packet.data, packet.leaves.tobytes()]
