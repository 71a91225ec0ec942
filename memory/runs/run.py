"""A run on a Redis server: its settings, its epochs, and how a learner begins or goes on with one.

The learner alone opens a run. Opening raises the epoch, so that scripts refuse writes by a predecessor that
does not know it was replaced, and by actors with old settings.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import redis

from memory.runs.counters import Counters, read_counters
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.scripts import load_scripts
from memory.server.connection import Client
from memory.server.patience import Patience

log = logging.getLogger(__name__)

Setting = bool | int | float | str | None | list[float] | list[int]
Settings = dict[str, Setting]

POLL_EVERY_S = 0.5

CHUNK_FORMAT = 3
"""Version of chunks, raised whenever they are made or kept in another way: 1 had whole frames, 2 kept chunks
by slot.
"""

LAYOUT = (
    "memory_capacity",
    "chunk_length",
    "history_length",
    "multi_step",
    "discount",
    "reward_clip",
    "reward_smoothing",
    "action_repeat",
    "frame_width",
    "frame_height",
    "resize",
    "grey",
    "game",
    "minimal_actions",
    "terminal_on_life_loss",
)
"""Settings that stored chunks were made with: a change of any empties the replay.

Those of an earlier version may lack some, which were not set then.
"""

AT_LEAST = """
local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if held < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
"""
_ELSEWHERE = """
local now, elsewhere = redis.call('HMGET', KEYS[1], 'steps', 'elsewhere'), tonumber(ARGV[1])
local steps = tonumber(now[1] or 0)
local whole = math.max(steps, steps - tonumber(now[2] or 0) + elsewhere)
redis.call('HSET', KEYS[1], 'steps', string.format('%d', whole), 'elsewhere', ARGV[1])
"""
"""Script for shard 0 that sets how many steps the other shards hold: those that it has forgotten must not
count as its own once steps are raised.
"""
_FINISH = """
if redis.call('HGET', KEYS[1], 'epoch') == ARGV[1] then redis.call('HSET', KEYS[1], 'finished', 1) end
"""


class OpenedRun(NamedTuple):
    """What the learner found or made."""

    epoch: int
    replay_kept: bool
    counters: Counters
    began: int  # as of RunInfo
    elsewhere: Sequence[int] = ()  # steps that each shard other than 0 holds


class RunInfo(NamedTuple):
    """What an actor adopts."""

    settings: Settings
    epoch: int
    fresh_since: int  # the epoch in which the replay was last emptied
    learner: str  # lease token of the learner that opened this epoch
    began: int  # the first epoch of the run, which a resumed one keeps; 0 where an earlier version opened it
    chunk_format: int  # of the stored chunks; 1 where an earlier version opened it


class Place(NamedTuple):
    """Where a shard of a run lies."""

    client: Client
    keys: Keys


@dataclass(frozen=True)
class LearnerSlot:
    """The learner's place in a run that it has opened; its lease is held."""

    client: Client
    keys: Keys
    lease: Lease
    epoch: int
    patience: Patience
    shards: Sequence[Place] = ()  # where those of the replay lie, shard 0 first


def open_run(
    client: Client,
    keys: Keys,
    settings: Mapping[str, Setting],
    keep_replay: bool,
    steps: int,
    episode_sequences: Mapping[int, int],
    learner: str,
    last_epoch: int = 0,
    others: Sequence[Counters] = (),
    began: int | None = None,
    refilled: int = 0,
    finished: bool = False,
) -> OpenedRun:
    """Begin an epoch, in the name of the learner whose lease token is `learner`.

    Args:
        keep_replay: Whether experience that Redis still holds in the same layout stays. Otherwise every key
            of the run is removed first.
        steps: T_actors of the snapshot. No counter ends below it, though Redis may have forgotten some.
        episode_sequences: Actor -> its last episode that is already on disk; as `steps`.
        last_epoch: The new epoch is above it.
        others: What shards other than 0 hold.
        began: The first epoch of the run; None where it begins with this one.
        refilled: Those of `steps` that refilled a replay.
        finished: Whether nothing is left to do, so that no actor plays.
    """
    load_scripts(client)
    counters, previous = read_counters(client, keys), read_settings(client, keys)
    kept = previous if keep_replay and _fits(counters, previous, settings) else None
    if counters.last_chunk and kept is None:
        other = "it has other settings, or was stored by another version"
        reason = other if keep_replay else "there is no snapshot to go on from"
        log.warning("Removing the replay that Redis holds of run %r: %s.", keys.run, reason)
    known = max(counters.epoch, last_epoch, *(each.epoch for each in others))
    epoch = max(known + 1, int(time.time() * 1000))
    fresh_since = epoch if kept is None else kept.fresh_since
    began = epoch if began is None else began
    info = RunInfo(dict(settings), epoch, fresh_since, learner, began, CHUNK_FORMAT)
    least = {"steps": steps, **{f"episodes:{actor}": last for actor, last in episode_sequences.items()}}
    refill = max(refilled, 0 if kept is None else counters.refilled)
    elsewhere = [each.steps - each.elsewhere if each.epoch >= fresh_since else 0 for each in others]
    _begin_epoch(client, keys, info, elsewhere, least, refill, finished)
    return OpenedRun(epoch, kept is not None, read_counters(client, keys), began, elsewhere)


def _begin_epoch(
    client: Client,
    keys: Keys,
    info: RunInfo,
    elsewhere: Sequence[int],
    least: Mapping[str, int],
    refill: int,
    finished: bool,
) -> None:
    """Write all that an epoch begins with in one transaction, and remove what an empty replay must not hold.

    Args:
        elsewhere: As of OpenedRun.
        least: Counter -> the value that it must not be below.
    """
    published = info._asdict()
    del published["epoch"]  # it is one of the counters
    with client.pipeline(transaction=True) as pipeline:
        if info.fresh_since == info.epoch:
            pipeline.unlink(*keys.experience)
        if elsewhere:
            pipeline.eval(_ELSEWHERE, 1, keys.counters, sum(elsewhere))
        for field, value in least.items():
            pipeline.eval(AT_LEAST, 1, keys.counters, field, value)
        begun = {"epoch": info.epoch, "batches": 0, "finished": int(finished), "refill": refill}
        pipeline.hset(keys.counters, mapping=begun)
        pipeline.set(keys.settings, json.dumps(published))
        pipeline.execute()


def _fits(counters: Counters, previous: RunInfo | None, settings: Mapping[str, Setting]) -> bool:
    """Whether Redis holds a replay that was made alike."""
    return (
        previous is not None
        and max(counters.last_chunk, counters.steps) > 0
        and previous.chunk_format == CHUNK_FORMAT
        and all((previous.settings.get(name) or 0) == (settings.get(name) or 0) for name in LAYOUT)
        and (previous.settings.get("shards") or 1) == (settings.get("shards") or 1)
    )


def allow_learning(client: Client, keys: Keys, learning_starts_at: int, refill: int = 0) -> None:
    """Say at which value of `steps` learning begins in this epoch, and how many of these refill a replay."""
    client.hset(keys.counters, mapping={"learning_starts_at": learning_starts_at, "refill": refill})


def finish_run(client: Client, keys: Keys, epoch: int) -> None:
    """Tell the actors that the run is over, unless another learner than that of `epoch` has begun."""
    client.eval(_FINISH, 1, keys.counters, epoch)


def read_settings(client: Client, keys: Keys) -> RunInfo | None:
    """What the learner has published; None when no learner has opened this run, or it cannot be read."""
    document = client.get(keys.settings)
    if document is None:
        return None
    try:
        found = json.loads(document)
        settings, fresh_since, learner = found["settings"], found["fresh_since"], found.get("learner", "")
        began, chunk_format = found.get("began", 0), found.get("chunk_format", 1)
        if not isinstance(settings, dict) or not isinstance(learner, str):
            raise TypeError
        if not all(type(number) is int for number in (fresh_since, began, chunk_format)):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        log.warning("The settings that Redis holds of run %r are damaged.", keys.run)
        return None
    return RunInfo(settings, read_counters(client, keys).epoch, fresh_since, learner, began, chunk_format)


def read_living_run(client: Client, keys: Keys) -> RunInfo | None:
    """As `read_settings`, but None once that learner has ended: the next one may change everything."""
    info, token = read_settings(client, keys), client.get(keys.learner_lease)
    return info if info is not None and token is not None and info.learner == token.decode() else None


def run_names(client: Client) -> list[str]:
    """Runs that the server holds; those alone that this user may read."""
    end = Keys("").counters.removeprefix("{").encode()
    keys = client.scan_iter(match="{*}:counters", count=1000)
    found = (key.removesuffix(end)[1:].decode(errors="replace") for key in keys)
    return sorted(run for run in found if _is_there(client, run))


def _is_there(client: Client, run: str) -> bool:
    with contextlib.suppress(redis.exceptions.NoPermissionError):
        return bool(client.exists(Keys(run).counters))
    return False


def wait_for_run(client: Client, keys: Keys, patience: Patience) -> RunInfo | None:
    """The settings once a living learner has opened the run; None when a stop was asked for first."""
    announced = False
    while not patience.stopped():
        info = patience(read_living_run, client, keys)
        if info is not None and info.epoch:
            return info
        if not announced:
            others = "none"
            with contextlib.suppress(redis.exceptions.ResponseError):  # an ACL may keep the names from actors
                others = ", ".join(patience(run_names, client)) or "none"
            log.info("Waiting for the learner of run %r (runs that Redis holds: %s).", keys.run, others)
            announced = True
        time.sleep(POLL_EVERY_S)
    return None
