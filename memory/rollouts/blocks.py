"""Rollouts through Redis: a bounded list between actors and an on-policy learner.

Each actor may have `max_policy_lag` + 1 rollouts outstanding, pushed and not yet learned from, and begins
the next one when fewer are. With a lag of 0 actors and learner take turns; with 1 an actor plays a rollout
while its last one is learned from, and every rollout is one update old when its turn comes.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from memory.chunks.codec import CodecError, Meta
from memory.chunks.decoding import unpack
from memory.chunks.encoding import pack
from memory.rollouts.rollout import Rollout, RolloutLimits
from memory.runs.counters import FIELDS, Counters, parse_counts
from memory.runs.keys import Keys
from memory.runs.push import Pusher
from memory.runs.reports import living_actors
from memory.runs.scripts import PUSH_ROLLOUTS, Sender
from memory.server.channel import ServerWatch
from memory.server.connection import Client
from memory.server.patience import Patience

log = logging.getLogger(__name__)

NAMED = struct.Struct("<II")
"""Actor and sequence, which stand before every rollout in the list: so it is known whose a damaged one is."""


class RolloutPacket(NamedTuple):
    """One rollout on its way."""

    data: bytes
    transitions: int

    @property
    def arguments(self) -> list[bytes | int]:
        """The script's arguments for this rollout."""
        return [self.transitions, self.data]


class RolloutPusher(Pusher):
    """Pushes rollouts; the server refuses more than may be outstanding."""

    def __init__(self, sender: Sender, max_policy_lag: int, patience: Patience) -> None:
        """`max_policy_lag`: updates."""
        super().__init__(sender, PUSH_ROLLOUTS, [sender.keys.rollouts], max_policy_lag + 1, patience)
        self._lag = max_policy_lag

    def adopt(self, epoch: int) -> None:
        """Go on under the learner's new epoch, after the rollouts that the server still counts.

        Where it has forgotten some, it would take a later number for one rollout too many.
        """
        held = parse_counts(self._client.hmget(self._keys.counters, [f"pushed:{self._actor}"]))[0]
        self.sequence = min(self.sequence, held)
        super().adopt(epoch)

    def may_begin(self) -> bool:
        """Whether the next rollout may begin: no more than the lag are outstanding.

        Asked between two rollouts, when nothing is on its way: where the server has fewer than were pushed,
        it was started anew without the last ones.
        """
        names = [f"pushed:{self._actor}", f"learned:{self._actor}"]
        self.sequence, learned = parse_counts(self._client.hmget(self._keys.counters, names))
        return self.sequence - learned <= self._lag


class PushedRollout(NamedTuple):
    """A rollout as it came from one actor."""

    actor: int
    sequence: int  # counts this actor's rollouts
    updates: int  # version of the weights it was played with
    weights_epoch: int
    begins_anew: bool  # the first of an actor's process, which counts on from those of the one before it
    rollout: Rollout  # its streams are those of the actor alone, `continues` is not known yet

    def following(self, last: int | None) -> Rollout:
        """The rollout, given the sequence of the one that was learned from last of the same actor."""
        stream = (np.int64(self.actor) << 32) + self.rollout.stream
        continues = last == self.sequence - 1 and not self.begins_anew
        return self.rollout._replace(stream=stream, continues=np.full(len(stream), continues))


def rollout_to_bytes(rollout: Rollout, meta: Meta) -> bytes:
    """Packed; `meta` names actor, sequence, updates and weights_epoch, and may say `begins_anew`."""
    return pack(meta, rollout._asdict())


def rollout_from_bytes(data: bytes) -> PushedRollout:
    """The rollout in `data`; raises CodecError when it is damaged or not whole."""
    meta, columns = unpack(data)
    columns.pop("values", None)  # which actors of earlier versions send
    if columns.keys() != set(Rollout._fields):
        raise CodecError(f"A rollout has the columns {sorted(Rollout._fields)}, not {sorted(columns)}.")
    rollout = Rollout(**columns)
    if rollout.rewards.ndim != 2 or not rollout.ages.ndim or rollout.frames.ndim < 2:
        raise CodecError("The columns of a rollout have too few dimensions.")
    steps, environments = rollout.rewards.shape
    if len(rollout.ages) != steps + 1 or rollout.frames.shape[1] != environments:
        raise CodecError(f"A rollout of {steps} steps has {len(rollout.ages)} frames.")
    try:
        actor, sequence = int(meta["actor"]), int(meta["sequence"])
        updates, weights_epoch = int(meta["updates"]), int(meta["weights_epoch"])
        begins_anew = bool(meta.get("begins_anew", False))  # actors of earlier versions do not say it
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CodecError("A rollout does not say who played it with which weights.") from error
    return PushedRollout(actor, sequence, updates, weights_epoch, begins_anew, rollout)


class TakenRollout(NamedTuple):
    """What came from an actor; `pushed` is None where it was damaged."""

    actor: int
    pushed: PushedRollout | None


class RolloutStore:
    """The learner's end of the list. All of it may be repeated after a lost reply."""

    def __init__(self, client: Client, keys: Keys, epoch: int, limits: RolloutLimits | None = None) -> None:
        """Whatever waits from before this epoch was played with other weights: it is removed.

        `limits`: what is outside them counts as damaged.
        """
        self._client, self._keys, self._limits = client, keys, limits
        self._watch = ServerWatch(client, epoch)
        self.largest_bytes = 0  # of a rollout as it was stored
        self._taken: list[TakenRollout] = []  # and not handed out yet
        self._last: dict[int, int] = {}  # actor -> sequence of its rollout that was taken last
        client.unlink(keys.rollouts)
        self._done = self._pushed()  # actor -> how many of its rollouts are no longer outstanding
        for actor, pushed in self._done.items():
            client.hset(keys.counters, f"learned:{actor}", pushed)

    def counters(self) -> Counters:
        """The run's counters. Raises ReplayLost, also where the server may have forgotten some rollouts: with
        a new epoch all count as done with, and nobody waits for them.
        """
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.hmget(self._keys.counters, list(FIELDS))
            pipeline.client_id()
            values, connection = pipeline.execute()
        counters = Counters(*parse_counts(values))
        self._watch.check(counters.epoch, connection)
        return counters

    def living(self, actors: Iterable[int]) -> set[int]:
        """Those of the `actors` whose leases are held."""
        return living_actors(self._client, self._keys, actors)

    def take(self) -> list[TakenRollout]:
        """All rollouts that wait, oldest first; they are outstanding until `done`."""
        data = self._client.lrange(self._keys.rollouts, 0, -1)
        for each in data:
            if len(each) < NAMED.size:
                log.warning("A rollout without a name is left out.")
                continue
            actor, sequence = NAMED.unpack_from(each)
            if sequence > self._last.get(actor, 0):
                self._last[actor] = sequence
                self._taken.append(TakenRollout(actor, self._whole(each[NAMED.size :], actor)))
        self.largest_bytes = max([self.largest_bytes, *(len(each) for each in data)])
        if data:
            self._client.ltrim(self._keys.rollouts, len(data), -1)
        taken, self._taken = self._taken, []
        return taken

    def done(self, actor: int) -> None:
        """One more rollout of this actor was learned from or dropped: it may begin another."""
        done = self._done.get(actor, 0) + 1
        self._client.hset(self._keys.counters, f"learned:{actor}", done)
        self._done[actor] = done

    def count_batches(self, batches: int) -> None:
        """Say how many updates were done in this epoch."""
        self._client.hset(self._keys.counters, "batches", batches)

    def _pushed(self) -> dict[int, int]:
        """Actor -> how many rollouts it has pushed."""
        found = self._client.hgetall(self._keys.counters)
        own = {name: value for name, value in found.items() if name.startswith(b"pushed:")}
        actors = parse_counts([name.removeprefix(b"pushed:") for name in own])
        return dict(zip(actors, parse_counts(list(own.values())), strict=True))

    def _whole(self, data: bytes, actor: int) -> PushedRollout | None:
        try:
            pushed = rollout_from_bytes(data)
            if pushed.actor != actor:
                raise CodecError("It says another actor than the list.")
            if self._limits is not None:
                self._limits.check(pushed.rollout)
        except CodecError as error:
            log.warning("A rollout is left out: %s", error)
            return None
        return pushed


def side_by_side(rollouts: list[Rollout]) -> Rollout:
    """One rollout of the environments of all; all have the same number of steps."""
    per_environment = {"looked", "stream", "continues", "updates"}
    joined: dict[str, Any] = {
        name: np.concatenate(
            [getattr(each, name) for each in rollouts], axis=int(name not in per_environment)
        )
        for name in Rollout._fields
    }
    return Rollout(**joined)
