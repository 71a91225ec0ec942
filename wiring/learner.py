"""Builds a learner that begins afresh, from given weights, or from its last snapshot."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agents.base import Agent
from args import Args, UserError
from envs import EnvDescription
from learning.generators import restore_global_generators
from learning.housekeeping import Best, Housekeeper, HousekeepingConfig
from learning.learner import PUBLISH_AT_MOST_EVERY_S, Learner, LearnerConfig
from learning.results import Results, set_aside
from learning.resume import newest_snapshot
from learning.sampler import learner_step
from learning.snapshot import Snapshot, check_holds, last_models, load_snapshot, restoring
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.run import OpenedRun, open_run
from memory.server.connection import Client, Patience
from reporting.provenance import write_run_json
from wiring.setting import Setting, build_agent, device_of, set_up_torch
from wiring.stores import store_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Learning:
    """A learner ready to run."""

    learner: Learner
    housekeeper: Housekeeper
    actor_state: Mapping[str, Any] | None
    """Of a serial run's actor, where nothing was played since it was saved."""


def build_learner(
    setting: Setting,
    client: Client,
    keys: Keys,
    lease: Lease,
    stopped: Callable[[], bool],
    publish_every_s: float = PUBLISH_AT_MOST_EVERY_S,
) -> Learning:
    """A learner that begins afresh or resumes, its run opened; `lease` is held."""
    args, folder = setting.args, Path(setting.args.path_to_results)
    store = store_of(args)
    patience = Patience(args.redis_patience, stopped)
    snapshot = _first_snapshot(setting, folder)
    agent = _learning_agent(setting, snapshot)
    updates, t_actors = (snapshot["updates"], snapshot["t_actors"]) if snapshot else (0, 0)
    results = _results(setting, folder, updates, resumed=snapshot is not None)
    opened = patience(
        lambda: open_run(
            client,
            keys,
            args.shared(),
            snapshot is not None,
            t_actors,
            results.last_sequences,
            lease.token,
            last_epoch=snapshot.get("epoch", 0) if snapshot else 0,
            began=snapshot.get("began", 0) if snapshot else None,
        )
    )
    if not opened.replay_kept:
        log.info("Run %r begins with an empty replay. %s", keys.run, store.sentence(setting))
    source = store.source(setting, client, keys, opened, snapshot, patience)
    learner = Learner(
        args.select(LearnerConfig),
        client,
        keys,
        opened.epoch,
        agent,
        source,
        updates,
        patience,
        snapshot.get("published_t") if snapshot else None,
        publish_every_s,
    )
    best = Best(snapshot["best_mean"], snapshot["best_episodes"]) if snapshot else Best()
    config = args.select(HousekeepingConfig)
    housekeeper = Housekeeper(
        config,
        client,
        keys,
        lease,
        learner,
        results,
        folder,
        args.file_name,
        {"settings": args.shared() | {"run": keys.run}, "config": args.model_dump(), "began": opened.began},
        best,
        patience,
    )
    _write_run(args, folder)
    if snapshot is None:
        housekeeper.save()  # so that a learner that is killed early goes on, instead of beginning anew
    return Learning(learner, housekeeper, _actor_state(snapshot, opened))


def _actor_state(snapshot: Snapshot | None, opened: OpenedRun) -> Mapping[str, Any] | None:
    if snapshot is None or opened.counters.steps != snapshot["t_actors"]:
        return None
    state: Mapping[str, Any] | None = snapshot.get("actor")
    return state


def _first_snapshot(setting: Setting, folder: Path) -> Snapshot | None:
    args = setting.args
    if not args.model:
        return newest_snapshot(folder, args.file_name, _expected(setting), store_of(args).kept)
    if last_models(folder, args.file_name):
        raise UserError(
            f"--model starts afresh, but {folder} holds snapshots of a run of {args.game}:"
            " choose another --path-to-results, or leave --model out to resume that run."
        )
    return None


def _results(setting: Setting, folder: Path, updates: int, resumed: bool) -> Results:
    args, description = setting.args, setting.description
    if not resumed:
        set_aside(folder / f"{args.file_name}.csv")
    first_step = learner_step(args.learn_start, args.replay_frequency, updates)
    try:
        return Results(
            folder,
            args.games,
            args.file_name,
            description.frames_per_step,
            _action_bounds(description),
            first_step,
        )
    except ValueError as error:  # a table of episodes that cannot be read
        raise UserError(str(error)) from error


def _action_bounds(description: EnvDescription) -> list[tuple[float, float]] | None:
    if description.action_low is None or description.action_high is None:
        return None
    return list(zip(description.action_low, description.action_high, strict=True))


def _expected(setting: Setting) -> dict[str, object]:
    args = setting.args
    return {
        "agent": args.agent,
        "game": args.game,
        "run": args.run_name,
        "history_length": args.history_length,
    }


def _learning_agent(setting: Setting, snapshot: Snapshot | None) -> Agent:
    agent = build_agent(setting.args, setting.problem, learning=True)
    set_up_torch(setting.args, agent)
    if snapshot is not None:
        _name_other_seed(setting.args, snapshot)
        with restoring():
            agent.load_state_dict(snapshot["agent_state"])
            if "global_generators" in snapshot:  # snapshots of earlier versions lack them
                restore_global_generators(snapshot["global_generators"])
    elif setting.args.model:
        path = Path(setting.args.model)
        given = load_snapshot(path)
        check_holds(path, given, ("acting_weights",))
        agent.load_acting_weights(given["acting_weights"])
    return agent


def _name_other_seed(args: Args, snapshot: Snapshot) -> None:
    """Generators go on from the snapshot; environments that are built anew take the seed given now."""
    before = snapshot.get("config", {}).get("seed", args.seed)  # snapshots of earlier versions lack it
    if before != args.seed:
        log.warning("The snapshot is of --seed %s: environments that start now take %d.", before, args.seed)


def _write_run(args: Args, folder: Path) -> None:
    gpu = torch.cuda.get_device_name() if device_of(args).type == "cuda" else None
    write_run_json(folder / f"run_{args.file_name}.json", args.model_dump(), args.seed, sys.argv, gpu)
