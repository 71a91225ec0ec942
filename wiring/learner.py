"""Builds a learner that begins afresh, from given weights, or from its last snapshot."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from agents.base import Agent
from agents.registry import has_replay
from args import Args, UserError
from learning.each_second import HousekeepingConfig
from learning.housekeeping import Housekeeper
from learning.learner import Learner, LearnerConfig
from learning.pool import Pool, PoolConfig
from learning.publishing import check_size, packing_as
from learning.results import Results
from learning.saved.figures import Figures, set_aside
from learning.saved.folder import SnapshotFolder, emergencies, newest_snapshot
from learning.saved.lock import FolderLock
from learning.saved.saving import Saver, restore_global_generators
from learning.saved.snapshot import Snapshot, check_holds, load_snapshot, restoring
from learning.source import Source
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.run import LearnerSlot, OpenedRun, Place, open_run, read_settings
from memory.runs.shards import make_known
from memory.server.connection import Client
from memory.server.patience import Patience
from reporting.model_files import last_models
from wiring.code import check_code, code_settings
from wiring.record.page import descriptions, run_facts, seats_of
from wiring.record.played import set_matches_aside, tracking_of
from wiring.record.provenance import write_run_json
from wiring.setting import Setting, agent_of, changed_flags, device_of, naming_flags, set_up_torch
from wiring.shards import connect_shards
from wiring.sources import SNAPSHOT_PARTS, build_source, check_length, memory_sentence, replay_dump

if TYPE_CHECKING:  # a run of one learner imports none of it
    from learning.ranks.group import Ranks

log = logging.getLogger(__name__)


class Learning(NamedTuple):
    """A learner ready to run."""

    learner: Learner
    housekeeper: Housekeeper
    saver: Saver
    actor_state: Mapping[str, Any] | None
    """Of a serial run's actor, where nothing was played since it was saved."""
    frames_per_step: int


@contextmanager
def claimed_folder(
    args: Args, client: Client, keys: Keys, stopped: Callable[[], bool]
) -> Iterator[FolderLock]:
    """Hold the lock on this game's files in --path-to-results; the learner's lease must be held.

    Raises FolderTaken.
    """

    def is_replaced(epoch: int) -> bool:  # this server gave its lease to the present learner
        return epoch == Patience(args.redis_patience, stopped)(read_counters, client, keys).epoch

    lock = FolderLock(Path(args.path_to_results), args.file_name).acquire(is_replaced, stopped)
    try:
        yield lock
    finally:
        lock.release()


def build_learner(
    setting: Setting,
    client: Client,
    keys: Keys,
    lease: Lease,
    lock: FolderLock,
    stopped: Callable[[], bool],
    ranks: Ranks | None = None,
) -> Learning:
    """A learner that begins afresh or resumes, its run opened; `lease` and `lock` are held.

    `ranks`: of several learners, of which this one leads.
    """
    args, folder = setting.args, Path(setting.args.path_to_results)
    patience = Patience(args.redis_patience, stopped)
    snapshot = _first_snapshot(setting, folder)
    if snapshot is None:
        check_length(args)
        patience(_check_same_game, args, client, keys, folder)
    agent = _learning_agent(setting, snapshot)
    if ranks is not None:
        ranks.join(agent)
    figures = _figures(setting, folder, snapshot)
    shards = connect_shards(args, client, stopped)
    opened = patience(_open_run, args, shards, lease, figures.results, snapshot)
    lock.name_epoch(opened.epoch)
    if not opened.replay_kept:
        store = "an empty replay" if has_replay(args.agent) else "no rollouts"
        log.info("Run %r begins with %s. %s", keys.run, store, memory_sentence(setting))
    slot = LearnerSlot(client, keys, lease, opened.epoch, patience, shards)
    source = build_source(setting, slot, opened, snapshot, ranks)
    learner = _learner(args, slot, agent, source, snapshot)
    place = SnapshotFolder(folder, args.file_name, lock)
    saver = _saver(setting, place, slot, learner, figures, _kept_parts(args, keys, opened, snapshot))
    _write_record(args, folder, opened.began)
    if snapshot is None:
        saver.save_patiently()  # a learner that is killed early resumes from it, instead of beginning anew
    nothing_played = snapshot is not None and opened.counters.steps == snapshot["t_actors"]
    return Learning(
        learner,
        _housekeeper(args, folder, learner, figures, saver),
        saver,
        snapshot.get("actor") if snapshot and nothing_played else None,
        1 if setting.games else setting.description.frames_per_step,
    )


def _learner(
    args: Args, slot: LearnerSlot, agent: Agent, source: Source[Any], snapshot: Snapshot | None
) -> Learner:
    updates, published_t = (snapshot["updates"], snapshot.get("published_t")) if snapshot else (0, None)
    config, pack = args.select(LearnerConfig), packing_as(args.weights_dtype)
    return Learner(config, slot, agent, source, updates, published_t, pack)


def _housekeeper(args: Args, folder: Path, learner: Learner, figures: Figures, saver: Saver) -> Housekeeper:
    has_pool = args.opponents != "self"
    pool = Pool(args.select(PoolConfig), folder, args.file_name, learner) if has_pool else None
    return Housekeeper(args.select(HousekeepingConfig), learner, figures.results, saver, pool)


def _saver(
    setting: Setting,
    place: SnapshotFolder,
    slot: LearnerSlot,
    learner: Learner,
    figures: Figures,
    kept: Snapshot,
) -> Saver:
    args = setting.args
    has_dump = args.save_replay and has_replay(args.agent)
    dump = replay_dump(args, slot) if has_dump else None
    described = [each.description for each in setting.games or (setting,)]
    plays_itself = any(each.by_turns or each.seats > 1 for each in described)
    return Saver(place, learner, figures, kept, dump, scores_rank=not plays_itself)


def _kept_parts(args: Args, keys: Keys, opened: OpenedRun, snapshot: Snapshot | None) -> Snapshot:
    """What every snapshot names of its run, and the best score so far."""
    return {
        "settings": args.shared() | code_settings(args) | {"run": keys.run},
        "config": args.model_dump(),
        "began": opened.began,
        "best_mean": snapshot["best_mean"] if snapshot else None,
        "best_episodes": snapshot["best_episodes"] if snapshot else 0,
    }


def _write_record(args: Args, folder: Path, began: int) -> None:
    """`run_<game>.json`: how this process was started."""
    gpu = torch.cuda.get_device_name() if device_of(args).type == "cuda" else None
    record = folder / f"run_{args.file_name}.json", args.model_dump(), args.seed, sys.argv, began, gpu
    try:
        write_run_json(*record)
    except OSError as error:
        log.warning("Going on without the record of this start (%s).", error.strerror or error)


def _open_run(
    args: Args, shards: Sequence[Place], lease: Lease, results: Results, snapshot: Snapshot | None
) -> OpenedRun:
    others = shards[1:]
    if others:
        make_known(shards[0].client)
    return open_run(
        *shards[0],
        args.shared() | code_settings(args),
        snapshot is not None,
        snapshot["t_actors"] if snapshot else 0,
        results.episodes.newest,
        lease.token,
        last_epoch=snapshot.get("epoch", 0) if snapshot else 0,
        others=[read_counters(*place) for place in others],
        began=snapshot.get("began", 0) if snapshot else None,
        refilled=snapshot.get("refilled", 0) if snapshot else 0,  # earlier versions counted these steps
        finished=_is_finished(args, snapshot),
    )


def _is_finished(args: Args, snapshot: Snapshot | None) -> bool:
    """Whether the run ended with this snapshot, and is asked for no more: actors would play for nobody."""
    if snapshot is None or not snapshot.get("finished"):  # earlier versions did not say
        return False
    config = snapshot["config"]
    return bool(args.T_max <= config["T_max"] and args.end_by == config["end_by"])


def _first_snapshot(setting: Setting, folder: Path) -> Snapshot | None:
    """What to resume from; None where a run begins."""
    args = setting.args
    if not args.model:
        expected = {
            "agent": args.agent,
            "game": args.game,
            "run": args.run_name,
            "history_length": args.history_length,
        }
        parts = SNAPSHOT_PARTS[has_replay(args.agent)]
        found = newest_snapshot(folder, args.file_name, expected, parts)
        if found is not None:
            check_code(args, found["settings"], f"The snapshot in {folder}")
        return found
    if last_models(folder, args.file_name) or emergencies(folder, args.file_name):
        raise UserError(
            f"--model starts afresh, but {folder} holds snapshots of a run of {args.game}:"
            " choose another --path-to-results, or leave --model out to resume that run."
        )
    return None


def _check_same_game(args: Args, client: Client, keys: Keys, folder: Path) -> None:
    """Raise UserError where a run that is to begin would remove one of another game that can be resumed."""
    run = read_settings(client, keys)
    game = args.game if run is None else str(run.settings.get("game", args.game))
    if game != args.game and (models := last_models(folder, args.playing(game).file_name)):
        raise UserError(
            f"Redis holds run {keys.run!r} of {game}, and {models[0]} is its snapshot: give a run of"
            f" {args.game} another --run."
        )


def _figures(setting: Setting, folder: Path, snapshot: Snapshot | None) -> Figures:
    """The run's figures, with the results that they show."""
    args = setting.args
    if snapshot is None:
        set_aside(folder / f"{args.file_name}.csv")
        set_matches_aside(folder, args.games)
    first_step = snapshot["t_learner"] if snapshot else 0
    try:
        results = Results(folder, args.games, args.file_name, first_step, seats_of(descriptions(setting)))
    except ValueError as error:  # a table that cannot be read
        raise UserError(str(error)) from error
    return Figures(folder, args.file_name, results, run_facts(setting), first_step, tracking_of(args))


def _learning_agent(setting: Setting, snapshot: Snapshot | None) -> Agent:
    agent = agent_of(setting, learning=True)
    set_up_torch(setting.args, agent)
    check_size(agent.acting_weights(), setting.args.weights_dtype)
    if snapshot is not None:
        seed = snapshot.get("config", {}).get("seed", setting.args.seed)  # earlier versions did not keep it
        if seed != setting.args.seed:  # generators continue from the snapshot
            sentence = "The snapshot is of --seed %s: environments that start now take %d."
            log.warning(sentence, seed, setting.args.seed)
        if changed := changed_flags(setting.args, snapshot.get("settings", {})):
            log.warning("The run had other flags before: %s.", " and ".join(changed))
        with restoring(), naming_flags(setting.args, snapshot.get("settings", {})):
            agent.load_state_dict(snapshot["agent_state"])
            if "global_generators" in snapshot:  # snapshots of earlier versions lack them
                restore_global_generators(snapshot["global_generators"])
    elif setting.args.model:
        path = Path(setting.args.model)
        given = load_snapshot(path)
        check_holds(path, given, ("acting_weights",))
        with naming_flags(setting.args, given.get("settings", {})):
            agent.load_acting_weights(given["acting_weights"])
    return agent
