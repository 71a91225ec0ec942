"""A run over several shards: where they lie, who may write there, and the clock that they share.

Settings, weights, episodes, statuses and leases lie in shard 0. Every shard has counters of its own, so that
a push is one script at one server. `steps` in them is T_actors of the whole run: what was pushed into this
shard, and `elsewhere`, which the learner adds. So the reply to a push tells an actor all it needs, and no
script has to look at another shard.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from redis.exceptions import RedisError

from memory.runs.counters import FIELDS, Counters, parse_counts, read_counters
from memory.runs.run import AT_LEAST, Place
from memory.runs.scripts import LostLease, ReplayLost, Sender, load_scripts, run_script, script_of
from memory.server.channel import Channel
from memory.server.connection import Client

_GRANT = script_of("""
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
local field, epoch = 'granted:' .. ARGV[2], tonumber(redis.call('HGET', KEYS[1], 'epoch') or 0)
local number = math.max(tonumber(redis.call('HGET', KEYS[1], field) or 0) + 1, epoch)
redis.call('HSET', KEYS[1], field, string.format('%d', number))
return number
""")
"""Script for shard 0 that gives the holder of an actor's lease a number above those of all holders before. It
begins with the epoch, so that it grows too where the server has forgotten the last one.
"""
_ADMIT = script_of("""
if tonumber(redis.call('GET', KEYS[1]) or 0) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
""")
"""Script for another shard, where that number is the actor's lease. It needs no end: a newer number takes its
place, and an older one is refused.
"""
_TELL = """
local epoch, now = tonumber(ARGV[1]), redis.call('HMGET', KEYS[1], 'epoch', 'steps', 'elsewhere')
for i = 1, 3 do now[i] = tonumber(now[i] or 0) end
if now[1] > epoch then return 0 end
local own, elsewhere = math.max(now[2] - now[3], tonumber(ARGV[2])), tonumber(ARGV[3])
local steps = math.max(now[2], own + elsewhere)
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'steps', string.format('%d', steps), 'elsewhere', ARGV[3],
  unpack(ARGV, 4))
return 1
"""
_LOOK = f"""
local counters, epoch = KEYS[1], ARGV[1]
local now = redis.call('HMGET', counters, 'epoch', 'steps', 'elsewhere')
if now[1] ~= epoch then return {{now[1] or '0'}} end
if ARGV[5] then
  local steps, elsewhere = tonumber(now[2] or 0), tonumber(ARGV[5])
  local whole = math.max(steps, steps - tonumber(now[3] or 0) + elsewhere)
  redis.call('HSET', counters, 'steps', string.format('%d', whole), 'elsewhere', ARGV[5], unpack(ARGV, 6))
end
local all = ARGV[2] == 'all' and redis.call('HGETALL', counters) or {{}}
return {{
  epoch, redis.call('HMGET', counters, '{"', '".join(FIELDS)}'),
  redis.call('XRANGE', KEYS[2], '(' .. ARGV[3] .. '-0', '+', 'COUNT', ARGV[4]), all
}}
"""
"""Script that reads what is new in a shard. A restarted server, which it cannot know, may have forgotten
steps and pushes. So unlike _TELL it raises no steps of the shard's own: pushes that are sent again would
count twice.
"""
_OF_THE_RUN = "learning_starts_at", "finished", "refill"
"""Counters that shard 0 knows and that are published to the others, besides the learner's batches."""


def own_steps(counters: Counters) -> int:
    """Those that were pushed into the shard with these counters."""
    return counters.steps - counters.elsewhere


class ShardProgress(NamedTuple):
    """How far a shard was when the learner last asked: it must not fall below that if it forgets some."""

    own: int = 0  # steps that were pushed there
    pushed: tuple[tuple[str, int], ...] = ()  # field of an actor -> number of its last packet among them


LOOK_AGAIN_AFTER_S = 1.0
LOOKS_PER_TIME = 0.05
"""Largest share of a process's time for looks at a shard that is away: a silent one takes 10 s to fail."""


def next_look(took_s: float) -> float:
    """When (monotonic) to look again at a shard that is away; the last look took so many seconds."""
    return time.monotonic() + max(LOOK_AGAIN_AFTER_S, took_s / LOOKS_PER_TIME)


class ShardLook(NamedTuple):
    """What a look at a shard has found."""

    counters: Counters  # those of the whole run, as the shard knows them; of another epoch only that
    arrivals: list[tuple[bytes, dict[bytes, bytes]]] = []  # noqa: RUF012 - never changed
    progress: ShardProgress = ShardProgress()
    connection: int = 0


class _IdleChannel(Channel):
    """A connection that may break while it is idle, which is noticed only at the next call."""

    def refresh(self) -> None:
        """Have the next call connect anew if it broke, or if answers were left unread."""
        try:
            if not self._in_flight and not self._connection.can_read():
                return
        except RedisError:
            pass
        self._close()


class Poller:
    """Looks at a shard over a connection of its own: all shards are asked before an answer is read."""

    def __init__(self, place: Place, epoch: int, whole: bool = True) -> None:
        """`whole`: looks bring the shard's progress. Raises redis errors."""
        self._keys = place.keys.counters, place.keys.arrivals
        self._epoch, self._whole, self._line = epoch, whole, _IdleChannel(place.client)

    def ask(self, newest: int, most: int, counts: Sequence[int]) -> None:
        """Ask for at most `most` chunks after `newest`. `answer` reads the answer.

        Args:
            counts: Published to the shard, if there are any: steps in all others, batches, and
                `of_the_run`, which shard 0 knows by itself.

        Raises:
            RedisError: The question could not be sent.
        """
        published = [*counts[:1], *_named(counts[1:])]
        self._line.refresh()
        call = self._epoch, "all" if self._whole else "", newest, most, *published
        self._line.send([("EVAL", _LOOK, 2, *self._keys, *call), ("CLIENT", "ID")])

    def answer(self) -> ShardLook:
        """What it found. Raises redis errors."""
        found, connection = self._line.answers(2)
        if len(found) == 1:
            return ShardLook(Counters(*parse_counts(found)))
        _, values, arrivals, held = found
        counters = Counters(*parse_counts(values))
        chunks = [(name, dict(zip(pairs[::2], pairs[1::2], strict=True))) for name, pairs in arrivals]
        fields = dict(zip(held[::2], held[1::2], strict=True))
        return ShardLook(counters, chunks, _progress_of(counters, fields), connection)


def of_the_run(counters: Counters) -> tuple[int, ...]:
    """What shard 0 knows and is published to the others."""
    return tuple(getattr(counters, name) for name in _OF_THE_RUN)


def _named(counts: Iterable[int]) -> Iterator[str | int]:
    return chain.from_iterable(zip(("batches", *_OF_THE_RUN), counts, strict=False))


def _progress_of(counters: Counters, fields: Mapping[bytes, bytes]) -> ShardProgress:
    pushed = {name: number for name, number in fields.items() if name.startswith(b"pushed:")}
    numbers = parse_counts(list(pushed.values()))
    return ShardProgress(own_steps(counters), tuple(zip(map(bytes.decode, pushed), numbers, strict=True)))


def _tell(place: Place, epoch: int, own: int, elsewhere: int, run: Counters) -> None:
    """Bring a shard into an epoch, and its steps up to `own` and those `elsewhere`. They never fall: what
    another shard has lost counts as pushed here. Raises ReplayLost.
    """
    pairs = _named((run.batches, *of_the_run(run)))
    if not place.client.eval(_TELL, 1, place.keys.counters, epoch, own, elsewhere, *pairs):
        raise ReplayLost(f"Epoch {epoch} is over: another learner has begun.")


def join(
    place: Place, epoch: int, fresh_since: int, progress: ShardProgress, elsewhere: int, run: Counters
) -> None:
    """Take a shard into the learner's epoch: from now on only those who know that epoch write there.

    Args:
        fresh_since: The epoch in which the replay was last emptied; what is older is removed.
        progress: What the shard may have forgotten. What an actor sends again of that does not count twice.
        elsewhere: Steps in all other shards, as far as they are known yet.
        run: What is to be said of the run as a whole.

    Raises:
        ReplayLost: A newer learner has begun.
    """
    make_known(place.client)
    held = read_counters(*place)
    if held.epoch < fresh_since:
        place.client.unlink(*place.keys.experience)
        held = Counters()
    for field, number in progress.pushed:
        place.client.eval(AT_LEAST, 1, place.keys.counters, field, number)
    _tell(place, epoch, progress.own, max(held.elsewhere, elsewhere), run)


def make_known(client: Client) -> None:
    """Load the scripts that actors run."""
    load_scripts(client)
    for script in (_GRANT, _ADMIT):
        client.script_load(script.text)


def admitted(home: Sender, place: Place) -> Sender:
    """An actor as it writes to a shard other than 0; `home` holds its lease in shard 0.

    A process that was replaced without knowing it cannot come back there: its number is the lower one.

    Raises:
        LostLease: Another process holds the lease, or has been admitted since.
    """
    lease = home.keys.actor_lease(home.actor)
    number = int(run_script(home.client, _GRANT, [home.keys.counters, lease], [home.lease_token, home.actor]))
    sender = Sender(*place, home.actor, str(number), home.epoch)
    if not number:
        raise LostLease(f"Actor {home.actor} no longer holds its lease.")
    admit(sender)
    return sender


def admit(sender: Sender) -> None:
    """Let a sender of `admitted` write to its shard, also again where the shard has forgotten it.

    Raises LostLease where another process has been admitted since.
    """
    lease = sender.keys.actor_lease(sender.actor)
    if not run_script(sender.client, _ADMIT, [lease], [sender.lease_token]):
        raise LostLease(f"Another process is actor {sender.actor} now.")
