"""The scripts that write to a run: each atomic, and only moving bytes. Those that only the learner of several
shards runs are in `memory.runs.shards`, those that open and end a run in `memory.runs.run`.

Whoever may load scripts loads ALL, at the latest when the server turns out not to know one. Where an
actor's user may not, the learner does: at its start, and with the next renewal of its lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha1
from typing import Any, NamedTuple

import redis

from memory.runs.counters import FIELDS
from memory.runs.keys import Keys
from memory.server.connection import Client


class StaleEpoch(RuntimeError):
    """The learner has begun anew since this process last looked: read the settings again."""


class ReplayLost(RuntimeError):
    """Redis lost this learner's epoch: it was emptied or started anew, or another learner has begun."""


class LostLease(RuntimeError):
    """Another process holds this role now, or the lease ran out: stop writing."""


class Sender(NamedTuple):
    """An actor that pushes into a run: it holds its lease, under the learner's epoch."""

    client: Client
    keys: Keys
    actor: int
    lease_token: str
    epoch: int


class Script(NamedTuple):
    """Lua, and the name under which a server knows it."""

    text: str
    sha: str


def script_of(text: str) -> Script:
    """The script, named as servers name it."""
    return Script(text, sha1(text.encode()).hexdigest())


_CHECKED = f"""
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

A failed script keeps what it has written. So commands that may fail come first, then those that must not run
twice, and the counters last, in one command: a failed push can be sent again. Only the first command that
writes can lack memory or disk.
"""

PUSH_CHUNKS = script_of(f"""{_CHECKED}
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
""")
"""Script that pushes chunks. They are stored as they come, nothing before them, since Lua reads every byte of
each string that it makes.
"""

PUSH_ROLLOUTS = script_of(f"""{_CHECKED}
local rollouts = KEYS[3]
local learned = tonumber(redis.call('HGET', counters, 'learned:' .. actor) or 0)
if last - learned > room then return redis.error_reply('more rollouts than may be outstanding') end
local sequence = first + known
for i = 7 + 2 * known, #ARGV, 2 do
  local transitions, data = ARGV[i], ARGV[i + 1]
  steps = steps + transitions
  redis.call('RPUSH', rollouts, struct.pack('<I4I4', tonumber(actor), sequence) .. data)
  sequence = sequence + 1
end
redis.call('HSET', counters, 'steps', steps, pushed, last)
return answer('accepted')
""")

REPORT_EPISODE = script_of("""
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 'stale epoch' end
if redis.call('GET', KEYS[3]) ~= ARGV[2] then return 'lost lease' end
local field = 'episodes:' .. ARGV[3]
local held = tonumber(redis.call('HGET', KEYS[1], field) or '0')
if tonumber(ARGV[4]) <= held then return 'duplicate' end
if tonumber(ARGV[4]) > held + 1 and ARGV[7] == 'in order' then return {held} end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[6], '*', 'episode', ARGV[5])
redis.call('HSET', KEYS[1], field, ARGV[4])
return 'accepted'
""")

RENEW_LEASE = script_of("""
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""")
"""Script that renews a lease. One that ran out, or went with an emptied server, is taken again if nobody else
has come.
"""

FREE_LEASE = script_of("""
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[1], 'PX', 1) end
""")
"""Script that ends a lease by SET, which taking and renewing need as well: an actor's user needs no DEL."""

WRITE_PRIORITIES = """
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
for i = 2, #ARGV, 2 do
  local held = redis.call('HGET', KEYS[2], ARGV[i])
  if held and string.sub(held, 1, 8) == string.sub(ARGV[i + 1], 1, 8) then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
end
return 1
"""
"""Script that writes priorities. The learner calls it, whose user may load scripts, like the two below. A
slot that another chunk has taken, which the first 8 bytes name, keeps its own priorities.
"""

PUBLISH_WEIGHTS = """
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
redis.call('MSET', KEYS[2], ARGV[2], KEYS[3], ARGV[3])
return 1
"""

ADD_TO_POOL = """
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('SET', KEYS[3], ARGV[4])
for i = 5, #ARGV do redis.call('HDEL', KEYS[2], ARGV[i]) end
return 1
"""

ALL = PUSH_CHUNKS, PUSH_ROLLOUTS, REPORT_EPISODE, RENEW_LEASE, FREE_LEASE


def load_scripts(client: Client) -> None:
    """Make all scripts known to the server."""
    for script in ALL:
        client.script_load(script.text)


def run_script(client: Client, script: Script, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
    """Run it, and return its answer.

    Raises NoScriptError where the server does not know it and this user may load none.
    """
    call = script.sha, len(keys), *keys, *arguments
    try:
        return client.evalsha(*call)
    except redis.exceptions.NoScriptError as unknown:
        try:
            load_scripts(client)
        except redis.exceptions.NoPermissionError:
            raise unknown from None
        return client.evalsha(*call)


def refuse(verdict: object, actor: int, epoch: int) -> None:
    """Raise StaleEpoch or LostLease where that is a script's verdict on this actor."""
    if verdict == b"stale epoch":
        raise StaleEpoch(f"Epoch {epoch} is over.")
    if verdict == b"lost lease":
        raise LostLease(f"Actor {actor} no longer holds its lease.")
