"""A run on a Redis server: its settings, its epochs, and how a learner begins or goes on with one.

The learner alone opens a run. Opening raises the epoch, so that a predecessor that still believes in itself,
and actors with old settings, are refused by the scripts that write.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from memory.runs.counters import Counters, read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client, patiently

log = logging.getLogger(__name__)

Setting = bool | int | float | str | None | list[float] | list[int]
Settings = dict[str, Setting]

POLL_EVERY_S = 0.5

CHUNK_FORMAT = 3
"""Raised whenever chunks are made or kept in another way: 1 had whole frames, 2 kept chunks by slot."""

_AT_LEAST = """
local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if held < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
"""


class OpenedRun(NamedTuple):
    """What the learner found or made."""

    epoch: int
    replay_kept: bool
    counters: Counters
    began: int  # as of RunInfo


class RunInfo(NamedTuple):
    """What an actor adopts."""

    settings: Settings
    epoch: int
    fresh_since: int  # the epoch in which the replay was last emptied
    learner: str  # lease token of the learner that opened this epoch
    began: int  # the first epoch of the run, which a resumed one keeps; 0 where an earlier version opened it
    chunk_format: int  # of the stored chunks; 1 where an earlier version opened it


def open_run(
    client: Client,
    keys: Keys,
    settings: Mapping[str, Setting],
    keep_replay: bool,
    steps: int,
    episode_sequences: Mapping[int, int],
    learner: str,
    last_epoch: int = 0,
    began: int | None = None,
) -> OpenedRun:
    """Begin an epoch above `last_epoch`, in the name of the learner whose lease token is `learner`, of a run
    that `began` with an earlier epoch, or begins with this one.

    With `keep_replay`, experience that Redis still holds in the same layout stays; otherwise every key of the
    run is removed first. `steps` (T_actors) and `episode_sequences` (actor -> last episode already on disk)
    are those of the snapshot; no counter ends below them, though Redis may have forgotten some.
    """
    counters, previous = read_counters(client, keys), read_settings(client, keys)
    kept = (
        keep_replay
        and previous is not None
        and max(counters.last_chunk, counters.steps) > 0
        and previous.chunk_format == CHUNK_FORMAT
        and _same_layout(previous.settings, settings)
    )
    if counters.last_chunk and not kept:
        other = "it has other settings, or was stored by another version"
        reason = other if keep_replay else "there is no snapshot to go on from"
        log.warning("Removing the replay that Redis holds of run %r: %s.", keys.run, reason)
    epoch = max(counters.epoch + 1, last_epoch + 1, int(time.time() * 1000))
    fresh_since = previous.fresh_since if kept and previous is not None else epoch
    began = epoch if began is None else began
    told = {"fresh_since": fresh_since, "learner": learner, "began": began, "chunk_format": CHUNK_FORMAT}
    said = {"settings": dict(settings), **told}
    with client.pipeline(transaction=True) as pipeline:
        if not kept:
            pipeline.unlink(*keys.experience)
        for name, least in {"steps": steps, **_named(episode_sequences)}.items():
            pipeline.eval(_AT_LEAST, 1, keys.counters, name, least)
        pipeline.hset(keys.counters, mapping={"epoch": epoch, "batches": 0, "finished": 0})
        pipeline.set(keys.settings, json.dumps(said))
        pipeline.execute()
    return OpenedRun(epoch, kept, read_counters(client, keys), began)


def _named(episode_sequences: Mapping[int, int]) -> dict[str, int]:
    return {f"episodes:{actor}": last for actor, last in episode_sequences.items()}


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
    "game",
)
"""Settings that stored chunks were made with: a change of any empties the replay."""


def _same_layout(old: Settings, new: Mapping[str, Setting]) -> bool:
    return all(old.get(name) == new.get(name) for name in LAYOUT)


def allow_learning(client: Client, keys: Keys, learning_starts_at: int) -> None:
    """Say at which value of `steps` learning begins in this epoch."""
    client.hset(keys.counters, "learning_starts_at", learning_starts_at)


def finish_run(client: Client, keys: Keys) -> None:
    """Tell the actors that the run is over."""
    client.hset(keys.counters, "finished", 1)


def read_settings(client: Client, keys: Keys) -> RunInfo | None:
    """What the learner has published; None when no learner has opened this run, or it cannot be read."""
    document = client.get(keys.settings)
    if document is None:
        return None
    try:
        found = json.loads(document)
        settings, fresh_since, learner = found["settings"], found["fresh_since"], found.get("learner", "")
        began, chunk_format = found.get("began", 0), found.get("chunk_format", 1)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        log.warning("The settings that Redis holds of run %r are damaged.", keys.run)
        return None
    whole = isinstance(settings, dict) and isinstance(learner, str)
    if not (whole and all(type(number) is int for number in (fresh_since, began, chunk_format))):
        log.warning("The settings that Redis holds of run %r are damaged.", keys.run)
        return None
    return RunInfo(settings, read_counters(client, keys).epoch, fresh_since, learner, began, chunk_format)


def read_living_run(client: Client, keys: Keys) -> RunInfo | None:
    """As `read_settings`, but None once that learner has ended: the next one may change everything."""
    info, token = read_settings(client, keys), client.get(keys.learner_lease)
    return info if info is not None and token is not None and info.learner == token.decode() else None


def wait_for_run(
    client: Client, keys: Keys, patience_s: float, stopped: Callable[[], bool]
) -> RunInfo | None:
    """The settings once a living learner has opened the run; None when `stopped` became true first. Says once
    that it waits.
    """
    announced = False
    while not stopped():
        info = patiently(lambda: read_living_run(client, keys), patience_s, "Redis", stopped)
        if info is not None and info.epoch:
            return info
        if not announced:
            log.info("Waiting for the learner of run %r (start launch_learner.py).", keys.run)
            announced = True
        time.sleep(POLL_EVERY_S)
    return None
