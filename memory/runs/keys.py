"""Every key that a run owns on a Redis server, in one place.

All keys of a run's shard share the hash tag `{run:shard}`, so that a Redis Cluster keeps them in one slot.
"""

from __future__ import annotations

from itertools import count

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot


class Keys:
    """Names of one run's keys."""

    def __init__(self, run: str, shard: int = 0, tag_suffix: str = "") -> None:
        """`run` holds no braces (checked by args.py); `tag_suffix`: as of the function of that name."""
        self.run, self.shard = run, shard
        self._prefix = prefix = f"{{{run}:{shard}{tag_suffix}}}:"
        self.settings = f"{prefix}settings"  # string: the run's shared settings as JSON
        self.counters = f"{prefix}counters"  # hash: the fields of memory.runs.counters, and some per actor
        self.chunks = f"{prefix}chunks"  # hash: chunk id -> packed chunk, as many as the ring has slots
        self.priorities = f"{prefix}priorities"  # hash: ring slot -> chunk id (8 bytes) and L float32 leaves
        self.arrivals = f"{prefix}arrivals"  # stream: `<chunk id>-0` per chunk, with its first leaves
        self.rollouts = f"{prefix}rollouts"  # list: packed rollouts that wait for an on-policy learner
        self.episodes = f"{prefix}episodes"  # stream: one entry per finished episode
        self.weights = f"{prefix}weights"  # string: header and weights that actors act with
        self.weights_version = f"{prefix}weights_version"  # string: the version of `weights`, small to poll
        self.pool = f"{prefix}pool"  # hash: updates -> header and weights of a past self to play against
        self.pool_members = f"{prefix}pool_members"  # string: the updates of all of them, as JSON
        self.status = f"{prefix}status"  # hash: role -> the status that this process published last
        self.learner_lease = f"{prefix}lease:learner"  # string with a time to live: the learner's token

    def actor_lease(self, actor: int) -> str:
        """String with a time to live: the token of the one actor with this id."""
        return f"{self._prefix}lease:actor:{actor}"

    @property
    def experience(self) -> tuple[str, ...]:
        """What a fresh start removes: everything but the leases."""
        others = "run", "shard", "_prefix", "learner_lease"
        return tuple(key for name, key in vars(self).items() if name not in others)


def keys_of_shard(run: str, shard: int, shards: int, in_cluster: bool) -> Keys:
    """Those of one of a run's shards; on a cluster their tags spread the shards over its nodes."""
    return Keys(run, shard, tag_suffix(run, shard, shards) if in_cluster else "")


def tag_suffix(run: str, shard: int, shards: int) -> str:
    """What the tag of a shard ends with, so that the slots of all shards lie evenly among the cluster's.

    The slots are divided into as many equal parts as there are shards. Shard 0 lies where the run's name puts
    it, which every program can tell; each of the others in the part that follows the one before it. A
    cluster's nodes mostly have equal parts too, so that each gets its share; and nothing has to be kept, or
    to be known of the cluster.
    """
    if not shard:
        return ""
    wanted = (_part(f"{run}:0", shards) + shard) % shards
    return next(end for n in count() if _part(f"{run}:{shard}{(end := f'.{n}')}", shards) == wanted)


def _part(tag: str, shards: int) -> int:
    return key_slot(tag.encode()) * shards // REDIS_CLUSTER_HASH_SLOTS
