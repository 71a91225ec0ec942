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
from envs.config import EnvDescription
from learning.housekeeping import Best, Housekeeper, HousekeepingConfig, SnapshotFiles
from learning.learner import Learner, LearnerConfig, LearnerSlot
from learning.results import Results, set_aside
from learning.resume import newest_snapshot, restore_global_generators
from learning.sampler import learner_step
from learning.snapshot import Snapshot, check_holds, last_models, load_snapshot, restoring
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.run import OpenedRun, open_run
from memory.server.connection import Client, Patience
from reporting.provenance import write_run_json
from wiring.setting import Setting, build_agent, device_of, set_up_torch
from wiring.sources import store_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Learning:
    """A learner ready to run."""

    slot: LearnerSlot
    learner: Learner
    housekeeper: Housekeeper
    actor_state: Mapping[str, Any] | None
    """Of a serial run's actor, where nothing was played since it was saved."""


def build_learner(
    setting: Setting, client: Client, keys: Keys, lease: Lease, stopped: Callable[[], bool]
) -> Learning:
    """A learner that begins afresh or resumes, its run opened; `lease` is held."""
    args, folder = setting.args, Path(setting.args.path_to_results)
    patience = Patience(args.redis_patience, stopped)
    snapshot = _first_snapshot(setting, folder)
    agent = _learning_agent(setting, snapshot)
    results = _results(setting, folder, snapshot)
    opened = patience(lambda: _open_run(args, client, keys, lease, results, snapshot))
    if not opened.replay_kept:
        sentence = store_of(args).memory_sentence(setting)
        log.info("Run %r begins with an empty replay. %s", keys.run, sentence)
    slot = LearnerSlot(client, keys, lease, opened.epoch, patience)
    source = store_of(args).build_source(setting, slot, opened, snapshot)
    updates, published_t = (snapshot["updates"], snapshot.get("published_t")) if snapshot else (0, None)
    learner = Learner(args.select(LearnerConfig), slot, agent, source, updates, published_t)
    best = Best(snapshot["best_mean"], snapshot["best_episodes"]) if snapshot else Best()
    origin = {
        "settings": args.shared() | {"run": keys.run},
        "config": args.model_dump(),
        "began": opened.began,
    }
    files = SnapshotFiles(folder, args.file_name, best)
    housekeeper = Housekeeper(args.select(HousekeepingConfig), slot, learner, results, files, origin)
    _write_run(args, folder)
    if snapshot is None:
        housekeeper.save()  # a learner that is killed early resumes from it, instead of beginning anew
    return Learning(slot, learner, housekeeper, _actor_state(snapshot, opened))


def _open_run(
    args: Args, client: Client, keys: Keys, lease: Lease, results: Results, snapshot: Snapshot | None
) -> OpenedRun:
    return open_run(
        client,
        keys,
        args.shared(),
        snapshot is not None,
        snapshot["t_actors"] if snapshot else 0,
        results.last_sequences,
        lease.token,
        last_epoch=snapshot.get("epoch", 0) if snapshot else 0,
        began=snapshot.get("began", 0) if snapshot else None,
    )


def _actor_state(snapshot: Snapshot | None, opened: OpenedRun) -> Mapping[str, Any] | None:
    if snapshot is None or opened.counters.steps != snapshot["t_actors"]:
        return None
    state: Mapping[str, Any] | None = snapshot.get("actor")
    return state


def _first_snapshot(setting: Setting, folder: Path) -> Snapshot | None:
    args = setting.args
    if not args.model:
        return newest_snapshot(folder, args.file_name, _expected(setting), store_of(args).snapshot_parts)
    if last_models(folder, args.file_name):
        raise UserError(
            f"--model starts afresh, but {folder} holds snapshots of a run of {args.game}:"
            " choose another --path-to-results, or leave --model out to resume that run."
        )
    return None


def _expected(setting: Setting) -> dict[str, object]:
    args = setting.args
    return {
        "agent": args.agent,
        "game": args.game,
        "run": args.run_name,
        "history_length": args.history_length,
    }


def _results(setting: Setting, folder: Path, snapshot: Snapshot | None) -> Results:
    args, description = setting.args, setting.description
    if snapshot is None:
        set_aside(folder / f"{args.file_name}.csv")
    first_step = learner_step(args.learn_start, args.replay_frequency, snapshot["updates"] if snapshot else 0)
    bounds = _action_bounds(description)
    try:
        return Results(folder, args.games, args.file_name, description.frames_per_step, bounds, first_step)
    except ValueError as error:  # a table of episodes that cannot be read
        raise UserError(str(error)) from error


def _action_bounds(description: EnvDescription) -> list[tuple[float, float]] | None:
    if description.action_low is None or description.action_high is None:
        return None
    return list(zip(description.action_low, description.action_high, strict=True))


def _learning_agent(setting: Setting, snapshot: Snapshot | None) -> Agent:
    agent = build_agent(setting.args, setting.problem, learning=True)
    set_up_torch(setting.args, agent)
    if snapshot is not None:
        _warn_of_other_seed(setting.args, snapshot)
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


def _warn_of_other_seed(args: Args, snapshot: Snapshot) -> None:
    """Generators continue from the snapshot; environments that are built anew take the seed given now."""
    before = snapshot.get("config", {}).get("seed", args.seed)  # snapshots of earlier versions lack it
    if before != args.seed:
        log.warning("The snapshot is of --seed %s: environments that start now take %d.", before, args.seed)


def _write_run(args: Args, folder: Path) -> None:
    gpu = torch.cuda.get_device_name() if device_of(args).type == "cuda" else None
    write_run_json(folder / f"run_{args.file_name}.json", args.model_dump(), args.seed, sys.argv, gpu)
