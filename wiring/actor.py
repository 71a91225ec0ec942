"""Builds an actor: one of a run on Redis, or one that plays for itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from acting.actor import Actor, ActorConfig, Exchange, StepObserver
from acting.episodes import tracker_of
from acting.live_window import LiveWindow
from acting.player import Player
from acting.rollout_writer import RolloutShape, RolloutWriter
from acting.run_link import ActorSlot, Link, NoLink, RunLink
from acting.weights import BackgroundWeights, PublishedWeights, SnapshotWeights, WeightsSource
from acting.writer import ExperienceWriter, Writer
from agents.base import Agent, ReplayAgent
from agents.on_policy import OnPolicyAgent
from args import Args
from envs.config import EnvConfig
from envs.registry import make_env
from envs.seeding import environment_seeds
from event_log.records import log_header
from event_log.writer import EventRecorder
from memory.chunks.codec import Meta
from memory.rollouts.blocks import RolloutPusher
from memory.runs.counters import Counters
from memory.runs.push import ChunkPusher, Pusher
from memory.runs.weights import WeightsReader
from memory.server.connection import Patience
from wiring.setting import (
    ACTOR,
    Setting,
    build_agent,
    coordinates,
    derived_seed,
    game_of_actor,
    set_up_torch,
)
from wiring.sources import sizes_of


class ExperienceSink(NamedTuple):
    """How an actor's experience is packed and pushed, and when its next step may be taken."""

    pusher: Pusher[Any]
    writer: Writer
    may_step: Callable[[Counters], bool]
    weights_every: int  # agent steps between two looks for new weights
    background_weights: bool = False  # whether the actor need not wait for them


def build_actor(setting: Setting, slot: ActorSlot, stopped: Callable[[], bool]) -> Actor:
    """An actor of a run."""
    args, patience = setting.args, Patience(setting.args.redis_patience, stopped)
    agent = _acting_agent(setting)
    sink = _sink(setting, agent, slot, patience)
    link = RunLink(slot, args.id_actor, sink.pusher, agent.learns, patience)
    weights = _snapshot_weights(args) or _published_weights(args, slot, sink, patience)
    exchange = Exchange(weights) if args.no_push else Exchange(weights, sink.writer, sink.may_step)
    return _actor(setting, agent, link, exchange)


def build_lone_actor(setting: Setting, stopped: Callable[[], bool]) -> Actor:
    """An actor that needs no Redis: nothing is pushed, weights come from --ckpt-dir if it is given."""
    agent = _acting_agent(setting)
    return _actor(setting, agent, NoLink(stopped), Exchange(_snapshot_weights(setting.args)))


def _acting_agent(setting: Setting) -> Agent:
    agent = build_agent(setting.args, setting.problem, learning=False)
    set_up_torch(setting.args, agent, acting=True)
    return agent


def _actor(setting: Setting, agent: Agent, link: Link, exchange: Exchange) -> Actor:
    """T_actors at its start is part of its seeds, so that an actor that starts again plays other episodes."""
    args = setting.args
    playing, began_at = args.playing(game_of_actor(args)), link.counters.steps
    env_seeds = environment_seeds(args.seed, args.id_actor, began_at, args.envs_per_actor)
    seed = derived_seed(args.seed, ACTOR, args.id_actor, began_at)
    env = make_env(playing.select(EnvConfig), env_seeds)
    player = Player(agent, env, args.history_length, seed, noisy=not args.eval)
    tracker = tracker_of(setting.description, args.envs_per_actor)
    return Actor(playing.select(ActorConfig), link, player, tracker, exchange, _observers(setting))


def _sink(setting: Setting, agent: Agent, slot: ActorSlot, patience: Patience) -> ExperienceSink:
    if isinstance(agent, ReplayAgent):
        return _replay_sink(setting, agent, slot)
    assert isinstance(agent, OnPolicyAgent)
    return _rollout_sink(setting, agent, slot, patience)


def _replay_sink(setting: Setting, agent: ReplayAgent, slot: ActorSlot) -> ExperienceSink:
    """Chunks with first priorities; an actor waits when the learner is too far behind."""
    args, sizes = setting.args, sizes_of(setting.args)
    place = slot.client, slot.keys, args.id_actor, slot.lease.token, slot.run.epoch
    pusher = ChunkPusher(*place, sizes.replay.slots, args.redis_patience)
    writer = ExperienceWriter(agent, args.envs_per_actor, sizes.chunk, sizes.rule, _meta(args, slot))
    in_background = not (args.serial or args.eval)  # a serial run repeats, an evaluation is of this moment
    every = args.weight_synchro_frequency
    return ExperienceSink(pusher, writer, sizes.limiter.actor_may_step, every, in_background)


def _rollout_sink(
    setting: Setting, agent: OnPolicyAgent[Any, Any], slot: ActorSlot, patience: Patience
) -> ExperienceSink:
    """Whole rollouts, each with the newest weights; an actor waits while too many are in flight."""
    args = setting.args
    place = slot.client, slot.keys, args.id_actor, slot.lease.token, slot.run.epoch
    pusher = RolloutPusher(*place, args.max_policy_lag, args.redis_patience)
    shape, heads = args.select(RolloutShape), len(agent.value_heads)
    writer = RolloutWriter(shape, args.envs_per_actor, heads, pusher.sequence, _meta(args, slot))

    def may_step(_: Counters) -> bool:
        return not writer.weights_may_change or patience(pusher.may_begin)

    return ExperienceSink(pusher, writer, may_step, weights_every=0)


def _meta(args: Args, slot: ActorSlot) -> Meta:
    """Where experience comes from, kept with it."""
    return {"run": slot.keys.run, "epoch": slot.run.epoch, **coordinates(args)}


def _published_weights(
    args: Args, slot: ActorSlot, sink: ExperienceSink, patience: Patience
) -> WeightsSource:
    reader = WeightsReader(slot.client, slot.keys)
    published = PublishedWeights(reader, sink.weights_every, patience, each_episode=args.eval)
    return BackgroundWeights(published) if sink.background_weights else published


def _snapshot_weights(args: Args) -> WeightsSource | None:
    return SnapshotWeights(Path(args.ckpt_dir), args.file_name) if args.ckpt_dir else None


def _observers(setting: Setting) -> list[StepObserver]:
    args = setting.args
    game = game_of_actor(args)
    observers: list[StepObserver] = []
    if args.event_log_out:
        header = log_header(game, setting.description)
        observers.append(EventRecorder(_own_log(Path(args.event_log_out), args), header))
    if args.render:
        observers.append(LiveWindow(f"{game}, actor {args.id_actor}", setting.description))
    return observers


def _own_log(path: Path, args: Args) -> Path:
    """One process writes one file: several actors of a run each get theirs, named by --id-actor."""
    return path if args.nb_actor == 1 else path.with_stem(f"{path.stem}_{args.id_actor}")
