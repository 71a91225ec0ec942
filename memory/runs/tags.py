"""The hash tags of a run's shards on a Redis Cluster."""

from __future__ import annotations

from itertools import count

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot


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
