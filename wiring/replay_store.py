"""The learner's end of the prioritised replay."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agents.parts.staging import Staging
from args import Args, UserError
from event_log.records import log_header
from learning.preseed import PreseedLines, preseed
from learning.replay_dump import ReplayDump
from learning.resume import missing_transitions, unlearned_steps, wanted_slots
from learning.sampler import Sampler, SamplerConfig
from learning.snapshot import Snapshot, restoring
from memory.chunks.chunk import ChunkLimits, ChunkShape
from memory.replay.batch import Lookahead
from memory.replay.limiter import Limiter, limiter_slack
from memory.replay.priorities import PriorityRule
from memory.replay.replay import Replay, ReplayShape
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.run import LAYOUT, OpenedRun, allow_learning
from memory.server.connection import Client, Patience
from wiring.setting import SAMPLER, Setting, derived_seed, device_of
from wiring.store import Store

log = logging.getLogger(__name__)


class Sizes(NamedTuple):
    """What both ends of a replay must have alike."""

    chunk: ChunkShape
    replay: ReplayShape
    rule: PriorityRule
    limiter: Limiter


def sizes_of(args: Args) -> Sizes:
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
    return Sizes(args.select(ChunkShape), args.select(ReplayShape), args.select(PriorityRule), limiter)


class ReplayStore(Store):
    """A ring of chunks in Redis, drawn from by priority."""

    kept = ("sampler_generator", "replay_slots", "owed_steps")

    def check(self, args: Args) -> None:
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

    def sentence(self, setting: Setting) -> str:
        """What a full replay takes in Redis if nothing can be compressed."""
        args, description, sizes = setting.args, setting.description, sizes_of(setting.args)
        frames = args.chunk_length + args.history_length - 1 + args.multi_step  # of one chunk, at least
        frame_bytes = math.prod(description.frame_shape) * np.dtype(description.frame_dtype).itemsize
        megabytes = sizes.replay.slots * frames * frame_bytes / 1e6
        return (
            f"Full, its {args.memory_capacity:,} transitions take about {megabytes:,.1f} MB in Redis"
            " if they do not compress; images of games take a small part of that."
        )

    def source(
        self,
        setting: Setting,
        client: Client,
        keys: Keys,
        opened: OpenedRun,
        snapshot: Snapshot | None,
        patience: Patience,
    ) -> Sampler:
        """The sampler, its tree rebuilt from Redis; learning begins once the replay is full enough."""
        args, sizes = setting.args, sizes_of(setting.args)
        if args.event_log_in and snapshot is None and not opened.replay_kept:
            _preseed(setting, sizes, client, keys, opened.epoch, patience)
        dump = _dump(setting, client, keys, sizes.replay)
        if snapshot is not None and not opened.replay_kept:
            dump.restore(opened.epoch, patience)
        replay = _load_replay(setting, sizes, client, keys, opened.epoch, snapshot)
        missing = missing_transitions(snapshot, replay.filled_slots, sizes.replay, args.learn_start)
        owed = 0 if missing else unlearned_steps(snapshot, opened.counters.steps, sizes.limiter.slack)
        starts_at = opened.counters.steps + missing - owed
        patience(lambda: allow_learning(client, keys, starts_at or 1))  # 0 would say that nothing was said
        device = device_of(args)
        return Sampler(
            args.select(SamplerConfig),
            replay,
            sizes.limiter,
            int(snapshot["updates"]) if snapshot else 0,
            read_counters(client, keys),
            wanted_slots(snapshot, sizes.replay),
            dump if args.save_replay else None,
            Staging(device).stage if device.type == "cuda" else None,
        )


def _dump(setting: Setting, client: Client, keys: Keys, shape: ReplayShape) -> ReplayDump:
    args, shared = setting.args, setting.args.shared()
    layout = {name: shared[name] for name in LAYOUT}
    return ReplayDump(Path(args.path_to_results), args.file_name, client, keys, shape, layout)


def _preseed(
    setting: Setting, sizes: Sizes, client: Client, keys: Keys, epoch: int, patience: Patience
) -> None:
    args = setting.args
    path, header = Path(str(args.event_log_in)), log_header(args.game, setting.description)
    slots, lines = sizes.replay.slots, PreseedLines(path)
    transitions = preseed(path, header, client, keys, epoch, sizes.chunk, slots, patience, lines)
    log.info("The replay begins with %s transitions from %s.", f"{transitions:,}", path)


def _load_replay(
    setting: Setting, sizes: Sizes, client: Client, keys: Keys, epoch: int, snapshot: Snapshot | None
) -> Replay:
    args, told = setting.args, setting.description
    limits = ChunkLimits(
        told.frame_shape, told.frame_dtype, told.num_actions, told.action_low, told.action_high
    )
    generator = np.random.default_rng(derived_seed(args.seed, SAMPLER))
    if snapshot is not None:
        with restoring():
            generator.bit_generator.state = snapshot["sampler_generator"]
    lookahead = Lookahead(args.multi_step, args.discount) if args.intrinsic != "none" else None
    replay = Replay(client, keys, sizes.replay, epoch, sizes.rule, generator, lookahead, limits)
    replay.load()
    return replay
