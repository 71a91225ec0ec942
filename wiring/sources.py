"""The learner's source of batches: a replay in Redis, or a list of rollouts."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.base import RolloutAgent
from agents.parts.batches import Staging
from agents.registry import agent_type
from args import Args, UserError
from envs.config import EnvDescription
from event_log.records import log_header
from learning.fill_replay import FileProgress, ReplayDump, preseed
from learning.learner import LearnerSlot
from learning.resume import missing_transitions, unlearned_steps, wanted_slots
from learning.rollout_source import RolloutSource, RolloutSourceConfig
from learning.sampler import Sampler, SamplerConfig, SamplerStart
from learning.snapshot import Snapshot, restoring
from learning.source import Source
from memory.chunks.chunk import ChunkLimits, ChunkShape
from memory.replay.batch import Lookahead
from memory.replay.limiter import Limiter, limiter_slack
from memory.replay.priorities import PriorityRule
from memory.replay.replay import Replay, ReplayShape
from memory.rollouts.blocks import RolloutStore
from memory.rollouts.limits import RolloutLimits
from memory.runs.counters import read_counters
from memory.runs.run import LAYOUT, OpenedRun, allow_learning
from wiring.setting import SAMPLER, Setting, derived_seed, device_of

log = logging.getLogger(__name__)


class Store(NamedTuple):
    """The learner's side of one kind of store."""

    snapshot_parts: tuple[str, ...]  # that a resumed source needs
    check: Callable[[Args], None]  # raises UserError where parameters contradict each other
    memory_sentence: Callable[[Setting], str]  # how much memory a new run takes in Redis
    build_source: Callable[[Setting, LearnerSlot, OpenedRun, Snapshot | None], Source[Any]]


def store_of(args: Args) -> Store:
    """Where the experience of --agent waits."""
    return STORES[agent_type(args.agent).store]


def check_store(args: Args) -> None:
    """Raise UserError where parameters of the agent's store contradict each other."""
    store_of(args).check(args)


class ReplaySizes(NamedTuple):
    """What the actors' and the learner's side of a replay must have alike."""

    chunk: ChunkShape
    replay: ReplayShape
    rule: PriorityRule
    limiter: Limiter


def sizes_of(args: Args) -> ReplaySizes:
    """From the parameters."""
    slack = limiter_slack(
        args.weight_synchro_frequency,
        args.nb_actor * args.envs_per_actor,
        args.chunk_length,
        args.multi_step,
        args.queue_size,
        args.replay_frequency,
    )
    limiter = Limiter(args.synchronize_actors_with_learner, args.replay_frequency, slack)
    return ReplaySizes(args.select(ChunkShape), args.select(ReplayShape), args.select(PriorityRule), limiter)


def _check_replay(args: Args) -> None:
    """The replay must hold a chunk, a batch, and what is to be there before learning begins."""
    capacity, start, batch = args.memory_capacity, args.learn_start, args.batch_size
    for broken, sentence in (
        (capacity < batch, f"--memory-capacity {capacity} cannot fill a batch of {batch}."),
        (
            capacity < args.chunk_length,
            f"--memory-capacity {capacity} is less than one chunk of {args.chunk_length}.",
        ),
        (start > capacity, f"--learn-start {start} exceeds --memory-capacity {capacity}."),
        (start < batch, f"--learn-start {start} is less than one batch of {batch}."),
    ):
        if broken:
            raise UserError(sentence)


def _replay_memory(setting: Setting) -> str:
    """A full replay, if nothing can be compressed."""
    args, description = setting.args, setting.description
    frames = args.chunk_length + args.history_length - 1 + args.multi_step  # of one chunk, at least
    frame_bytes = math.prod(description.frame_shape) * np.dtype(description.frame_dtype).itemsize
    megabytes = sizes_of(args).replay.slots * frames * frame_bytes / 1e6
    return (
        f"Full, its {args.memory_capacity:,} transitions take about {megabytes:,.1f} MB in Redis"
        " if they do not compress; images of games take a small part of that."
    )


def _replay_source(
    setting: Setting, slot: LearnerSlot, opened: OpenedRun, snapshot: Snapshot | None
) -> Sampler:
    """The sampler, its tree rebuilt from Redis; learning begins once the replay is full enough."""
    args, sizes = setting.args, sizes_of(setting.args)
    layout = {name: args.shared()[name] for name in LAYOUT}
    dump = ReplayDump(Path(args.path_to_results), args.file_name, slot, sizes.replay, layout)
    if snapshot is None and not opened.replay_kept and args.event_log_in:
        _preseed(setting, sizes, slot, Path(args.event_log_in))
    if snapshot is not None and not opened.replay_kept:
        dump.restore()
    replay = _loaded_replay(setting, sizes, slot, snapshot)
    missing = missing_transitions(snapshot, replay.filled_slots, sizes.replay, args.learn_start)
    unlearned = 0 if missing else unlearned_steps(snapshot, opened.counters.steps, sizes.limiter.slack)
    starts_at = opened.counters.steps + missing - unlearned
    slot.patience(lambda: allow_learning(slot.client, slot.keys, starts_at or 1))  # 0 stands for "not set"
    updates = int(snapshot["updates"]) if snapshot else 0
    counters = read_counters(slot.client, slot.keys)
    device = device_of(args)
    return Sampler(
        args.select(SamplerConfig),
        replay,
        sizes.limiter,
        SamplerStart(updates, counters, wanted_slots(snapshot, sizes.replay)),
        dump if args.save_replay else None,
        Staging(device).stage if device.type == "cuda" else None,
    )


def _preseed(setting: Setting, sizes: ReplaySizes, slot: LearnerSlot, path: Path) -> None:
    header, progress = log_header(setting.args.game, setting.description), FileProgress(path)
    transitions = preseed(path, header, slot, sizes.chunk, sizes.replay.slots, progress)
    log.info("The replay begins with %s transitions from %s.", f"{transitions:,}", path)


def _loaded_replay(
    setting: Setting, sizes: ReplaySizes, slot: LearnerSlot, snapshot: Snapshot | None
) -> Replay:
    args, limits = setting.args, _chunk_limits(setting.description)
    generator = np.random.default_rng(derived_seed(args.seed, SAMPLER))
    if snapshot is not None:
        with restoring():
            generator.bit_generator.state = snapshot["sampler_generator"]
    lookahead = Lookahead(args.multi_step, args.discount) if args.intrinsic != "none" else None
    place = slot.client, slot.keys, sizes.replay, slot.epoch
    replay = Replay(*place, sizes.rule, generator, lookahead, limits)
    replay.load()
    return replay


def _chunk_limits(env: EnvDescription) -> ChunkLimits:
    return ChunkLimits(env.frame_shape, env.frame_dtype, env.num_actions, env.action_low, env.action_high)


def _check_rollouts(args: Args) -> None:
    """Everything fits: nothing is filled first, and batches are cut from whatever was played."""


def _rollout_memory(setting: Setting) -> str:
    return f"Redis holds no more than {setting.args.max_policy_lag + 1} rollouts of each actor."


def _rollout_source(
    setting: Setting, slot: LearnerSlot, opened: OpenedRun, snapshot: Snapshot | None
) -> RolloutSource:
    """A rollout of every actor, joined along the batch."""
    args, kind = setting.args, agent_type(setting.args.agent)
    assert issubclass(kind, RolloutAgent)
    chunk_limits = _chunk_limits(setting.description)
    limits = RolloutLimits(args.rollout_length, args.history_length, len(kind.value_heads), chunk_limits)
    store = slot.patience(lambda: RolloutStore(slot.client, slot.keys, slot.epoch, limits))
    updates, steps = (snapshot["updates"], snapshot["steps_learned"]) if snapshot else (0, 0)
    counters = read_counters(slot.client, slot.keys)
    return RolloutSource(args.select(RolloutSourceConfig), store, updates, steps, counters)


STORES = {
    "replay": Store(
        ("sampler_generator", "replay_slots", "owed_steps"), _check_replay, _replay_memory, _replay_source
    ),
    "rollouts": Store(("steps_learned",), _check_rollouts, _rollout_memory, _rollout_source),
}
"""By the name that agents give."""
