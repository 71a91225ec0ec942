"""Builds an actor: one of a run on Redis, or one that plays for itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from acting.actor import Actor
from acting.episodes import tracker_of
from acting.even_pace import EvenPace
from acting.links.link import ActorConfig, ActorSlot, Exchange, Link, StepObserver, Writer
from acting.links.run_link import RunLink
from acting.links.shard_link import ShardLink, until_it_moves
from acting.links.weights import PublishedWeights, SnapshotWeights, WeightsReader, WeightsSource
from acting.live_window import LiveWindow
from acting.opponents import Members, OpponentsConfig, SeatsPoolPlayer, TurnsPoolPlayer
from acting.player import Player
from acting.rollout_writer import RolloutShape, RolloutWriter
from acting.settings import event_log_path
from acting.watch import EnvironmentWatch
from acting.writer import ExperienceWriter
from agents.base import Agent, ReplayAgent
from args import Args, UserError
from envs.config import EnvConfig
from envs.contract import SeededVectorEnv
from envs.multi.barrier import SeatView
from envs.registry import make_env
from envs.seeding import environment_seeds
from event_log.writer import EventRecorder
from memory.chunks.codec import Meta
from memory.rollouts.blocks import RolloutPusher
from memory.runs.counters import Counters, read_counters
from memory.runs.push import ChunkPusher, Pusher
from memory.runs.scripts import Sender
from memory.server.connection import Client, RedisConfig, make_client
from memory.server.patience import Patience
from memory.settings import parsed_nodes
from wiring.code import log_header_of
from wiring.setting import ACTOR, Setting, acting_agent, build_agent, derived_seed, set_up_torch
from wiring.shards import connect_shard, node_of, ways_to_shards
from wiring.sources import sizes_of

log = logging.getLogger(__name__)


MakePlayer = Callable[[Agent, SeededVectorEnv, int], Player]
"""Of an agent, environments and a seed."""


class ExperienceSink(NamedTuple):
    """How an actor's experience is packed and pushed, and when its next step may be taken."""

    pusher: Pusher
    writer: Writer
    may_step: Callable[[Counters], bool]


def build_actor(
    setting: Setting, slot: ActorSlot, stopped: Callable[[], bool], env: SeatView | None = None
) -> Actor:
    """An actor of a run; `env`: its environments, where it does not make them by itself."""
    agent, several = _acting_agent(setting), bool(setting.games)
    setting = setting.of_actor(setting.args.id_actor)
    if setting.args.eval and not isinstance(agent, ReplayAgent):
        setting = setting.with_args(no_push=True)  # without noise it is another policy than is learned
    args, patience = setting.args, Patience(setting.args.redis_patience, stopped)
    sender = home = Sender(slot.client, slot.keys, args.id_actor, slot.lease.token, slot.run.epoch)
    ways = ways_to_shards(args, home)
    if ways:
        sender = connect_shard(args, slot, home, ways, patience)
    if isinstance(agent, ReplayAgent):
        with_server = until_it_moves(sender.keys.shard) if len(ways) > 1 else patience
        sink = _replay_sink(args, agent, slot, sender, with_server)
        sink = _evenly(args, sink, sender) if several else sink
    else:
        sink = _rollout_sink(args, slot, sender, patience)
    waits = args.serial or not isinstance(agent, ReplayAgent)
    link = RunLink(slot, sink.pusher, patience, reports=agent.learns, waits=waits)
    if ways:
        own, slots = args.id_actor % args.shards, sizes_of(args).replay.slots
        pushers = {number: partial(_moved, way, slots) for number, way in ways.items()}
        link = ShardLink(slot, sink.pusher, patience, agent.learns, home, own, pushers)
    weights = _snapshot_weights(args) or _published_weights(args, agent, slot, patience)
    exchange = Exchange(weights) if args.no_push else Exchange(weights, sink.writer, sink.may_step)
    return _actor(setting, agent, link, exchange, _against_past(setting, slot, patience), env)


def _moved(way: Callable[[], Sender], slots: int) -> Pusher:
    sender = way()
    return ChunkPusher(sender, slots, until_it_moves(sender.keys.shard))


def build_lone_actor(setting: Setting, stopped: Callable[[], bool]) -> Actor:
    """An actor that needs no Redis: nothing is pushed, weights come from --ckpt-dir if it is given."""
    setting = setting.with_args(end_by="actors")
    agent, setting = _acting_agent(setting), setting.of_actor(setting.args.id_actor)
    return _actor(setting, agent, Link(stopped), Exchange(_snapshot_weights(setting.args)))


def _acting_agent(setting: Setting) -> Agent:
    agent = acting_agent(setting, setting.args.id_actor)
    set_up_torch(setting.args, agent, acting=True)
    return agent


def _against_past(setting: Setting, slot: ActorSlot, patience: Patience) -> MakePlayer | None:
    """A player whose games are some of them against past selves; None where none is."""
    args = setting.args
    if args.opponents == "self" or args.eval:
        return None
    build = partial(build_agent, args, setting.problem, learning=False)
    members, config = Members(slot.client, slot.keys, patience, build), args.select(OpponentsConfig)
    kind = TurnsPoolPlayer if setting.description.by_turns else SeatsPoolPlayer
    return lambda agent, env, seed: kind(agent, env, config, seed, members)


def _actor(
    setting: Setting,
    agent: Agent,
    link: Link,
    exchange: Exchange,
    against_past: MakePlayer | None = None,
    env: SeatView | None = None,
) -> Actor:
    """An actor with its player and observers; an environment that hangs at its start is named."""
    args = setting.args
    playing = args.playing(_game_of_actor(args))
    config, began_at = playing.select(ActorConfig), None if env else time.monotonic()
    with EnvironmentWatch(config, lambda: began_at, lambda: "before its first step", link.stopped):
        player = _player(playing, agent, link.counters.steps, against_past, env)
    tracker = tracker_of(setting.description, args.envs_per_actor)
    if env is not None:
        tracker.environments = env.environments
    return Actor(config, link, player, tracker, exchange, _observers(setting))


def _player(
    args: Args, agent: Agent, t_actors: int, against_past: MakePlayer | None, env: SeededVectorEnv | None
) -> Player:
    """`t_actors` at its start is part of its seeds: an actor that starts again plays other episodes."""
    env_seeds = environment_seeds(args.seed, args.id_actor, t_actors, args.envs_per_actor)
    seed = derived_seed(args.seed, ACTOR, args.id_actor, t_actors)
    if env is None:
        config = args.select(EnvConfig)
        env = make_env(config.of_whole_games() if args.eval else config, env_seeds)
    if not args.no_push:
        env.largest_reward = _largest_reward(args, agent)
    if against_past is not None:
        return against_past(agent, env, seed)
    return Player(agent, env, args.history_length, seed, noisy=not args.eval)


def _largest_reward(args: Args, agent: Agent) -> float:
    """Experience is kept as float32: n-step returns of clipped rewards, or rewards as they are."""
    if isinstance(agent, ReplayAgent) and args.reward_clip:
        return float(np.finfo(np.float64).max)
    return float(np.finfo(np.float32).max) / args.multi_step


def _replay_sink(
    args: Args, agent: ReplayAgent, slot: ActorSlot, sender: Sender, patience: Patience
) -> ExperienceSink:
    """Chunks with first priorities; an actor waits when the learner is too far behind."""
    sizes = sizes_of(args)
    pusher = patience(ChunkPusher, sender, sizes.replay.slots, patience)
    writer = ExperienceWriter(agent, args.envs_per_actor, sizes.chunk, sizes.rule, _meta(args, slot))
    return ExperienceSink(pusher, writer, sizes.limiter.actor_may_step)


def _evenly(args: Args, sink: ExperienceSink, sender: Sender) -> ExperienceSink:
    """An actor waits for those of other games too, where all wait for the learner."""
    if not args.synchronize_actors_with_learner:
        return sink
    pace = EvenPace(args.shards, sizes_of(args).limiter.slack, read_counters(sender.client, sender.keys))

    def may_step(counters: Counters) -> bool:
        return sink.may_step(counters) and pace.may_step(counters)

    return sink._replace(may_step=may_step)


def _rollout_sink(args: Args, slot: ActorSlot, sender: Sender, patience: Patience) -> ExperienceSink:
    """A sink of whole rollouts, each with the newest weights; an actor waits while too many are in flight."""
    pusher = patience(RolloutPusher, sender, args.max_policy_lag, patience)
    shape, meta = args.select(RolloutShape), _meta(args, slot)
    writer = RolloutWriter(shape, args.envs_per_actor, pusher.sequence, meta)

    def may_step(_: Counters) -> bool:
        return not writer.weights_may_change or patience(pusher.may_begin)

    return ExperienceSink(pusher, writer, may_step)


def _meta(args: Args, slot: ActorSlot) -> Meta:
    """Where experience comes from, which is kept with it, in SLM-Lab's coordinates."""
    coordinates: Meta = {"agent": 0, "game": _game_of_actor(args), "actor": args.id_actor}
    return {"run": slot.keys.run, "epoch": slot.run.epoch, **coordinates}


def _game_of_actor(args: Args) -> str:
    """The game that actor --id-actor plays: they take turns by their numbers."""
    return args.games[args.id_actor % len(args.games)]


def _published_weights(args: Args, agent: Agent, slot: ActorSlot, patience: Patience) -> WeightsSource:
    """Looked for before each rollout, or every --weight-synchro-frequency steps.

    The actor waits for them where a serial run must repeat, and where an evaluation is of this moment.
    """
    is_between_rollouts = not (isinstance(agent, ReplayAgent) or args.no_push)
    every_steps = 0 if is_between_rollouts else args.weight_synchro_frequency
    client = _replica_reads(args, slot) if args.redis_replicas else slot.client
    reader = _shared_reader(args, slot, client) if args.share_weights else WeightsReader(client, slot.keys)
    waits = args.serial or args.eval or not isinstance(agent, ReplayAgent)
    return PublishedWeights(reader, every_steps, patience, each_episode=args.eval, in_background=not waits)


def _replica_reads(args: Args, slot: ActorSlot) -> Client:
    """Actors take --redis-replicas by turns; a run without them imports none of it."""
    from acting.links.replica_reads import ReplicaReads

    nodes = parsed_nodes(args.redis_replicas)
    host, port = nodes[args.id_actor % len(nodes)]
    config = replace(args.select(RedisConfig), host_redis=host, port_redis=port, redis_cluster=False)
    return ReplicaReads(slot.client, make_client(config), slot.keys, str(config))


def _shared_reader(args: Args, slot: ActorSlot, client: Client) -> WeightsReader:
    """A reader that all actors on this machine share; a run without --share-weights imports none of it."""
    from acting.links.shared_weights import NotShared, SharedWeightsReader

    try:
        return SharedWeightsReader(client, slot.keys, str(node_of(args, 0)))
    except NotShared as error:
        raise UserError(str(error)) from error


def _snapshot_weights(args: Args) -> WeightsSource | None:
    return SnapshotWeights(Path(args.ckpt_dir), args.file_name) if args.ckpt_dir else None


def _observers(setting: Setting) -> list[StepObserver]:
    args = setting.args
    game = _game_of_actor(args)
    observers: list[StepObserver] = []
    if args.event_log_out:
        path = event_log_path(args.event_log_out, args.id_actor, args.nb_actor)
        log.info("Actor %d writes the event log %s.", args.id_actor, path)
        observers.append(EventRecorder(path, log_header_of(game, setting.description, args.env_args)))
    if args.render:
        observers.append(LiveWindow(f"{game}, actor {args.id_actor}", setting.description))
    return observers
