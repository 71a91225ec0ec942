"""A run over several shards: where they lie, who may write there, and the clock that they share.

Settings, weights, episodes, statuses and leases lie in shard 0. Every shard has counters of its own, so that
a push is one script at one server. `steps` in them is T_actors of the whole run: what was pushed into this
shard, and `elsewhere`, which the learner adds. So the reply to a push tells an actor all it needs, and no
script has to look at another shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memory.runs.counters import Counters, parse_counts, read_counters
from memory.runs.run import AT_LEAST, Place
from memory.runs.scripts import LostLease, Sender, StaleEpoch, load_scripts, run_script, script_of
from memory.server.connection import Client

_GRANT = script_of("""
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
local field, epoch = 'granted:' .. ARGV[2], tonumber(redis.call('HGET', KEYS[1], 'epoch') or 0)
local number = math.max(tonumber(redis.call('HGET', KEYS[1], field) or 0) + 1, epoch)
redis.call('HSET', KEYS[1], field, string.format('%d', number))
return number
""")
"""In shard 0: a number for the holder of an actor's lease, above those of all holders before. It begins with
the epoch, so that it grows too where the server has forgotten the last one.
"""
_ADMIT = script_of("""
if tonumber(redis.call('GET', KEYS[1]) or 0) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
""")
"""In another shard that number is the actor's lease. It needs no end: a newer number takes its place, and an
older one is refused.
"""
_TELL = """
local epoch, now = tonumber(ARGV[1]), redis.call('HMGET', KEYS[1], 'epoch', 'steps', 'elsewhere')
for i = 1, 3 do now[i] = tonumber(now[i] or 0) end
if now[1] > epoch then return 0 end
local own, elsewhere = math.max(now[2] - now[3], tonumber(ARGV[2])), tonumber(ARGV[3])
local steps = math.max(now[2], own + elsewhere)
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'steps', string.format('%d', steps), 'elsewhere', ARGV[3],
  unpack(ARGV, 4))
local answer, all = {steps - elsewhere}, redis.call('HGETALL', KEYS[1])
for i = 1, #all do
  if string.sub(all[i], 1, 7) == 'pushed:' then
    table.insert(answer, all[i])
    table.insert(answer, all[i + 1])
  end
end
return answer
"""
_OF_THE_RUN = "batches", "learning_starts_at", "finished", "refill"
"""Counters that say the same in every shard."""


def own_steps(counters: Counters) -> int:
    """Those that were pushed into the shard with these counters."""
    return counters.steps - counters.elsewhere


class Standing(NamedTuple):
    """How far a shard was when the learner last asked: it must not fall below that if it forgets some."""

    own: int = 0  # steps that were pushed there
    pushed: tuple[tuple[str, int], ...] = ()  # field of an actor -> number of its last packet among them


def tell(place: Place, epoch: int, own: int, elsewhere: int, run: Counters) -> Standing:
    """Bring a shard's counters up to what the learner knows; may be repeated.

    Args:
        epoch: The learner's; a shard takes it over from an earlier learner.
        own: Steps that were pushed there, at least.
        elsewhere: Those of all other shards.
        run: What is to be said of the run as a whole.

    Returns:
        How far the shard is. Its `steps` never fall: what another shard has lost counts as pushed here.

    Raises:
        StaleEpoch: A newer learner has begun.
    """
    pairs = [item for name in _OF_THE_RUN for item in (name, getattr(run, name))]
    answer = place.client.eval(_TELL, 1, place.keys.counters, epoch, own, elsewhere, *pairs)
    if not answer:
        raise StaleEpoch(f"Epoch {epoch} is over: another learner has begun.")
    fields = map(bytes.decode, answer[1::2])
    return Standing(int(answer[0]), tuple(zip(fields, parse_counts(answer[2::2]), strict=True)))


def join(place: Place, epoch: int, fresh_since: int, standing: Standing, run: Counters) -> None:
    """Take a shard into the learner's epoch: from now on only those who know that epoch write there.

    Args:
        fresh_since: The epoch in which the replay was last emptied; what is older is removed.
        standing: What the shard may have forgotten. What an actor sends again of that does not count twice.
        run: As of `tell`.

    Raises:
        StaleEpoch: A newer learner has begun.
    """
    make_known(place.client)
    held = read_counters(*place)
    if held.epoch < fresh_since:
        place.client.unlink(*place.keys.experience)
        held = Counters(*[0] * len(Counters._fields))
    for field, number in standing.pushed:
        place.client.eval(AT_LEAST, 1, place.keys.counters, field, number)
    tell(place, epoch, standing.own, held.elsewhere, run)


def make_known(client: Client) -> None:
    """Load the scripts that actors run."""
    load_scripts(client)
    for script in (_GRANT, _ADMIT):
        client.script_load(script.text)


def newest_epoch(places: Sequence[Place]) -> int:
    """The last one that any of these shards knows."""
    return max((read_counters(*place).epoch for place in places), default=0)


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
