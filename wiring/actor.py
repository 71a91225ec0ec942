"""Builds an actor: one of a run on Redis, or one that plays for itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from acting.actor import Actor, ActorConfig, Watcher, always
from acting.background_weights import BackgroundWeights
from acting.episode_tracker import tracker_of
from acting.link import Link, NoLink, RunLink
from acting.live_window import LiveWindow
from acting.player import Player
from acting.weights_source import PublishedWeights, SnapshotWeights, WeightsSource
from agents.base import Agent
from args import Args
from envs import EnvConfig, make_env
from envs.seeding import environment_seeds
from event_log.recorder import EventRecorder, log_header
from memory.runs.weights import WeightsReader
from memory.server.connection import Patience
from wiring.setting import ACTOR, Setting, build_agent, derived_seed, game_of_actor, set_up_torch
from wiring.store import Outlet, Seat
from wiring.stores import store_of


def build_actor(setting: Setting, seat: Seat, stopped: Callable[[], bool]) -> Actor:
    """An actor of a run."""
    args = setting.args
    agent = _acting_agent(setting)
    outlet = store_of(args).outlet(setting, agent, seat, stopped)
    link = RunLink(
        seat.client,
        seat.keys,
        args.id_actor,
        seat.lease,
        seat.run,
        outlet.pusher,
        seat.find_run,
        agent.learns,
        args.redis_patience,
        stopped,
        seat.reported,
    )
    reader = WeightsReader(seat.client, seat.keys)
    patience = Patience(args.redis_patience, stopped)
    published = PublishedWeights(reader, outlet.weights_every, patience, each_episode=args.eval)
    weights = BackgroundWeights(published) if outlet.weights_may_come_late else published
    pushes = None if args.no_push else outlet
    return _actor(setting, agent, link, _from_disk(args) or weights, pushes, stopped)


def build_lone_actor(setting: Setting, stopped: Callable[[], bool]) -> Actor:
    """An actor that needs no Redis: nothing is pushed, weights come from --ckpt-dir if it is given."""
    agent = _acting_agent(setting)
    return _actor(setting, agent, NoLink(), _from_disk(setting.args), None, stopped)


def _acting_agent(setting: Setting) -> Agent:
    agent = build_agent(setting.args, setting.problem, learning=False)
    set_up_torch(setting.args, agent, acting=True)
    return agent


def _from_disk(args: Args) -> WeightsSource | None:
    return SnapshotWeights(Path(args.ckpt_dir), args.file_name) if args.ckpt_dir else None


def _actor(
    setting: Setting,
    agent: Agent,
    link: Link,
    weights: WeightsSource | None,
    outlet: Outlet | None,
    stopped: Callable[[], bool],
) -> Actor:
    """T_actors at its start is part of its seeds, so that an actor that starts again plays other episodes."""
    args = setting.args
    game = game_of_actor(args)
    began_at = link.counters.steps
    seeds = environment_seeds(args.seed, args.id_actor, began_at, args.envs_per_actor)
    player = Player(
        agent,
        make_env(args.playing(game).select(EnvConfig), seeds),
        args.history_length,
        derived_seed(args.seed, ACTOR, args.id_actor, began_at),
        noisy=not args.eval,
    )
    return Actor(
        args.playing(game).select(ActorConfig),
        link,
        agent,
        weights,
        player,
        tracker_of(setting.description, args.envs_per_actor),
        outlet and outlet.writer,
        outlet.may_step if outlet else always,
        _watchers(setting),
        stopped,
    )


def _own_log(path: Path, args: Args) -> Path:
    """One process writes one file: several actors of a run each get theirs, named by --id-actor."""
    return path if args.nb_actor == 1 else path.with_stem(f"{path.stem}_{args.id_actor}")


def _watchers(setting: Setting) -> list[Watcher]:
    args = setting.args
    game = game_of_actor(args)
    watchers: list[Watcher] = []
    if args.event_log_out:
        header = log_header(game, setting.description)
        watchers.append(EventRecorder(_own_log(Path(args.event_log_out), args), header))
    if args.render:
        watchers.append(LiveWindow(f"{game}, actor {args.id_actor}", setting.description))
    return watchers
