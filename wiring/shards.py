"""The shards of a run's replay: on which servers they lie, and an actor's way to one."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from acting.links.link import ActorSlot
from acting.links.reports import ANNOUNCE_WAIT_AFTER_S
from acting.links.shard_link import MOVE_AFTER_S
from agents.registry import has_replay
from args import Args, UserError
from memory.runs.counters import read_counters
from memory.runs.keys import Keys, keys_of_shard
from memory.runs.run import POLL_EVERY_S, Place
from memory.runs.scripts import Sender
from memory.runs.shards import admitted
from memory.server.connection import Client, RedisConfig, RedisUnreachable, connect, make_client
from memory.server.patience import Interrupted, Patience
from memory.server.replies import Refusing, suppress_what_passes
from memory.settings import parsed_nodes

log = logging.getLogger(__name__)


def check_shards(args: Args) -> None:
    """Raise UserError where a run cannot have its --shards, or has servers that it would not use."""
    shards = args.shards
    nodes = [] if args.redis_cluster else parsed_nodes(args.redis_nodes)
    if len(set(nodes)) < len(nodes):
        raise UserError(f"--redis-nodes {args.redis_nodes} names a server twice: name each once.")
    if len(nodes) > shards:
        raise UserError(
            f"--redis-nodes names {len(nodes)} servers, and --shards {shards} uses {shards} of them: give"
            f" --shards {len(nodes)}, or name fewer."
        )
    if shards == 1:
        return
    if not has_replay(args.agent):
        raise UserError(f"--shards {shards} divides a replay, and {args.agent} has none.")
    if args.serial:
        raise UserError(f"--serial has one actor, which fills one shard: leave --shards {shards} out.")
    if args.nb_actor < shards:
        raise UserError(
            f"Each actor writes to one shard: --shards {shards} needs --nb-actor {shards} or more."
        )
    if args.memory_capacity // shards < args.chunk_length:
        raise UserError(
            f"--memory-capacity {args.memory_capacity} is less than a chunk of {args.chunk_length} in each of"
            f" {shards} shards."
        )
    if args.save_replay or args.event_log_in:
        flag = "--save-replay" if args.save_replay else "--event-log-in"
        raise UserError(f"{flag} knows one shard only: leave it or --shards {shards} out.")


def node_of(args: Args, shard: int) -> RedisConfig:
    """The server of a shard of the run."""
    return args.select(RedisConfig).of_shard(shard)


def keys_of(args: Args, shard: int) -> Keys:
    """The keys of a shard of the run."""
    return keys_of_shard(args.run_name, shard, args.shards, args.redis_cluster)


def connect_shards(args: Args, home: Client, stopped: Callable[[], bool]) -> list[Place]:
    """All shards, 0 first; their servers have answered. Raises as `connect`."""
    clients, places = {node_of(args, 0): home}, [Place(home, keys_of(args, 0))]
    for shard in range(1, args.shards):
        node = node_of(args, shard)
        if args.redis_cluster or node not in clients:  # a cluster's client follows the slot of one shard
            clients[node] = connect(node, args.redis_patience, stopped)
        places.append(Place(clients[node], keys_of(args, shard)))
    return places


def connect_shard(
    args: Args, slot: ActorSlot, home: Sender, ways: Mapping[int, Callable[[], Sender]], patience: Patience
) -> Sender:
    """An actor's way to its shard, or to another of `ways` where it cannot write there soon.

    Raises Interrupted, LostLease, or as `connect`.
    """
    if len(ways) > 1:
        briefly = Patience(MOVE_AFTER_S, patience.stopped, full_seconds=MOVE_AFTER_S)
        with suppress(RedisUnreachable), suppress_what_passes():
            return _own_shard(args, slot, home, briefly, MOVE_AFTER_S)
        for shard in list(ways)[1:]:
            with suppress_what_passes():
                sender = ways[shard]()
                if read_counters(sender.client, sender.keys).epoch == slot.run.epoch:
                    sentence = "This actor cannot write to shard %d: it begins with shard %d."
                    log.warning(sentence, args.id_actor % args.shards, shard)
                    return sender
    return _own_shard(args, slot, home, patience, math.inf)


def _own_shard(
    args: Args, slot: ActorSlot, home: Sender, patience: Patience, opened_within_s: float
) -> Sender:
    """An actor's way to its shard, which is its number's, once the learner has opened that one.

    Raises as `connect_shard`, or Refusing where it is not opened within so many seconds.
    """
    shard, node = args.id_actor % args.shards, node_of(args, args.id_actor % args.shards)
    place = Place(connect(node, patience.seconds, patience.stopped), keys_of(args, shard))
    began = time.monotonic()
    announce_at = began + ANNOUNCE_WAIT_AFTER_S
    while patience(read_counters, *place).epoch != slot.run.epoch:
        if patience.stopped():
            raise Interrupted(f"Stopped while waiting for shard {shard}.")
        now = time.monotonic()
        if now >= announce_at:
            log.info(
                "Waiting for the learner to open shard %d at %s: has it the same --redis-nodes?", shard, node
            )
            announce_at = math.inf
        if now - began >= opened_within_s:
            raise Refusing("the learner has not opened it")
        time.sleep(POLL_EVERY_S)
    return patience(admitted, home, place)


def ways_to_shards(args: Args, home: Sender) -> dict[int, Callable[[], Sender]]:
    """What connects an actor to its own shard, and to those that it may write to while that one is away.

    They are in the order in which the actor tries them, which differs among the actors of a shard. Where
    shards hold different games there is only its own. Empty where its own is shard 0, which every run needs.
    """
    own = args.id_actor % args.shards
    if not own:
        return {}
    first = 1 + args.id_actor // args.shards % (args.shards - 1)
    numbers = [*range(first, args.shards), *range(1, first)] if len(args.games) == 1 else []
    shards = [own, *((args.id_actor + ahead) % args.shards for ahead in numbers)]
    return {shard: partial(_way, args, home, shard) for shard in shards}


def _way(args: Args, home: Sender, shard: int) -> Sender:
    if shard == 0:
        return home
    client = make_client(node_of(args, shard))
    return admitted(home, Place(client, keys_of(args, shard)))
