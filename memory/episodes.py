"""Finished episodes on their way from the actors to the learner, which alone writes them to disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from memory.connection import Client
from memory.keys import Keys
from memory.push import LostLease, StaleEpoch

KEPT = 200_000
"""Episodes that wait in Redis for a learner; about 60 MB at 300 bytes each, days of play."""

_REPORT = """
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 'stale epoch' end
if redis.call('GET', KEYS[3]) ~= ARGV[2] then return 'lost lease' end
local field = 'episodes:' .. ARGV[3]
if tonumber(ARGV[4]) <= tonumber(redis.call('HGET', KEYS[1], field) or '0') then return 'duplicate' end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[6], '*', 'episode', ARGV[5])
redis.call('HSET', KEYS[1], field, ARGV[4])
return 'accepted'
"""


class Episode(NamedTuple):
    """One finished episode; (actor, sequence) names it within its run."""

    actor: int
    sequence: int
    environment: int
    actor_steps: int  # T_actors when it ended
    learner_steps: int  # T_learner of the weights it ended with
    score_5min: float
    score_30min: float
    score_saber: float
    length: int  # agent steps
    evaluation: bool = False  # played without noise by an evaluation actor
    action_counts: Sequence[Sequence[int]] = ()  # as runtime.action_counter has them; empty: not counted
    rooms: Sequence[int] = ()  # that it came to; empty where the game tells of none


class EpisodeReporter:
    """Sends an actor's episodes; one sent twice counts once."""

    def __init__(self, client: Client, keys: Keys, actor: int, lease_token: str, epoch: int) -> None:
        self._client = client
        self._script = client.register_script(_REPORT)
        self._keys = [keys.counters, keys.episodes, keys.actor_lease(actor)]
        self._actor = actor
        self._token = lease_token
        self.sequence = int(client.hget(keys.counters, f"episodes:{actor}") or 0)
        self.epoch = epoch

    def report(self, episode: Episode) -> None:
        """Send one episode whose sequence follows `self.sequence`. Raises StaleEpoch or LostLease."""
        arguments = [self.epoch, self._token, self._actor, episode.sequence, json.dumps(episode), KEPT]
        verdict = self._script(self._keys, arguments)
        if verdict == b"stale epoch":
            raise StaleEpoch(f"Epoch {self.epoch} is over.")
        if verdict == b"lost lease":
            raise LostLease(f"Actor {self._actor} no longer holds its lease.")
        self.sequence = episode.sequence


def read_episodes(client: Client, keys: Keys, after: str, limit: int = 1000) -> tuple[str, list[Episode]]:
    """Episodes that came after stream id `after` ("0-0" for all), and the id to read on from."""
    answer = client.xread({keys.episodes: after}, count=limit)
    entries = answer[0][1] if answer else []
    episodes = [Episode(*json.loads(fields[b"episode"])) for _, fields in entries]
    return (entries[-1][0].decode() if entries else after), episodes
