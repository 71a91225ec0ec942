"""The learner's source of batches: a replay in Redis, or a list of rollouts."""

from __future__ import annotations

import gc
import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from agents.parts.devices import Staging
from agents.parts.off_policy import OffPolicyAgent
from agents.registry import agent_type, has_replay
from args import Args, UserError
from event_log.reader import read_header
from learning.rollout_source import RolloutSource, RolloutSourceConfig
from learning.sampler import Sampler, SamplerConfig
from learning.saved.fill_replay import (
    FileProgress,
    ReplayDump,
    missing_transitions,
    preseed,
    unlearned_steps,
    wanted_slots,
)
from learning.saved.snapshot import Snapshot, restoring
from learning.soft_bounds import SoftValueBounds
from learning.source import Source
from learning.value_bounds import ValueBounds
from memory.chunks.chunk import ChunkShape
from memory.replay.batch import Lookahead
from memory.replay.games import GameShape, GamesReplay
from memory.replay.leading import LeadingShards
from memory.replay.priorities import PriorityRule
from memory.replay.replay import Replay
from memory.replay.shape import ReplayShape
from memory.replay.shards import Shards
from memory.rollouts.blocks import RolloutStore
from memory.runs.counters import Limiter, read_counters
from memory.runs.run import LAYOUT, LearnerSlot, OpenedRun, allow_learning, read_settings
from wiring.code import log_header_of
from wiring.setting import SAMPLER, Setting, chunk_limits, derived_seed, device_of, rollout_limits
from wiring.shards import check_shards

if TYPE_CHECKING:  # a run without them imports none of it
    from learning.mirror.mirror import MirrorShape
    from learning.ranks.group import Ranks

log = logging.getLogger(__name__)

SNAPSHOT_PARTS = {
    True: ("sampler_generator", "replay_slots", "owed_steps"),
    False: ("steps_learned",),
}
"""Whether there is a replay -> parts of a snapshot that a resumed source needs."""


class ReplaySizes(NamedTuple):
    """What the actors' and the learner's side of a replay must have alike."""

    chunk: ChunkShape
    replay: ReplayShape
    rule: PriorityRule
    limiter: Limiter


def sizes_of(args: Args) -> ReplaySizes:
    """The sizes that the parameters say."""
    limiter = Limiter(args.synchronize_actors_with_learner, args.replay_frequency, limiter_slack(args))
    return ReplaySizes(args.select(ChunkShape), args.select(ReplayShape), args.select(PriorityRule), limiter)


def limiter_slack(args: Args) -> int:
    """Steps by which actors may lead: twice what may lie unpushed in all environments, and what is queued as
    batches; never less than two intervals between weights.
    """
    unpushed = args.nb_actor * args.envs_per_actor * (args.chunk_length + args.multi_step)
    queued = args.queue_size * args.replay_frequency
    return max(2 * args.weight_synchro_frequency, 2 * unpushed + queued)


def check_store(args: Args) -> None:
    """Raise UserError where a replay cannot hold a chunk, a batch, or --learn-start transitions; or where an
    agent without one is to act with rounded weights, or to begin from an event log.
    """
    check_shards(args)
    if args.gpu_replay:
        _check_mirrored(args)
    if not has_replay(args.agent):
        if args.weights_dtype != "float32":
            raise UserError(
                f"--weights-dtype {args.weights_dtype} is for agents with a replay: {args.agent} learns from"
                " what its own policy did, which rounding would make another one."
            )
        if args.event_log_in:
            raise UserError(f"--event-log-in fills a replay, and {args.agent} has none: leave it out.")
        return
    capacity, chunk, start, batch = args.memory_capacity, args.chunk_length, args.learn_start, args.batch_size
    if capacity < chunk:
        raise UserError(f"--memory-capacity {capacity} is less than one chunk of {chunk}.")
    held = args.select(ReplayShape).all_slots * chunk
    if held < batch:
        raise UserError(
            f"--memory-capacity {capacity} cannot fill a batch of {batch}: its chunks hold {held}."
        )
    if start > capacity:
        raise UserError(f"--learn-start {start} exceeds --memory-capacity {capacity}.")
    if start < batch:
        raise UserError(f"--learn-start {start} is less than one batch of {batch}.")


def check_length(args: Args) -> None:
    """Raise UserError where a new run would end as its learning begins; an event log has it begin at once.

    Say where one rollout goes beyond the run's end.
    """
    if args.T_max <= args.learn_start and not args.event_log_in:
        raise UserError(
            f"--T-max {args.T_max} ends the run before anything is learned: give a --learn-start below it,"
            f" not {args.learn_start}."
        )
    rollout = args.rollout_length * args.envs_per_actor * args.nb_actor
    if not has_replay(args.agent) and rollout > args.T_max:
        sentence = "One rollout has %s steps: the run ends after it, beyond --T-max %s."
        log.info(sentence, f"{rollout:,}", args.T_max)


def _check_mirrored(args: Args) -> None:
    """Raise UserError where a run cannot have --gpu-replay. Several learners: `wiring.ranks`."""
    if args.shards > 1:
        raise UserError(f"--gpu-replay knows one shard only: leave it or --shards {args.shards} out.")
    if args.intrinsic != "none":
        raise UserError(
            f"--gpu-replay has no frames for --intrinsic {args.intrinsic}: leave one of them out."
        )
    if not issubclass(agent_type(args.agent), OffPolicyAgent):
        raise UserError(f"--gpu-replay needs an agent that derives from OffPolicyAgent, not {args.agent}.")


def check_mirror_fits(setting: Setting) -> None:
    """Say how much of the device's memory --gpu-replay takes. Raises UserError where there is less."""
    from learning.mirror.frames import free_bytes

    args, device = setting.args, device_of(setting.args)
    needed, free = _mirror_shape(setting).frame_bytes / 1e6, free_bytes(device, args.gpu_mem_fraction) / 1e6
    if needed > free:
        raise UserError(
            f"--gpu-replay needs {needed:,.1f} MB of memory on {device}, where {free:,.1f} MB are free: give"
            " a smaller --memory-capacity, or leave it out."
        )
    log.info("--gpu-replay takes %s of %s MB that are free on %s.", f"{needed:,.1f}", f"{free:,.1f}", device)


def _mirror_shape(setting: Setting) -> MirrorShape:
    from learning.mirror.mirror import MirrorShape

    sizes = sizes_of(setting.args)
    return MirrorShape(sizes.replay.slots, sizes.chunk, chunk_limits(setting))


def memory_sentence(setting: Setting) -> str:
    """How much of Redis' memory a new run takes; a replay when it is full, if nothing can be compressed."""
    args, games = setting.args, setting.games or (setting,)
    if not has_replay(args.agent):
        rollouts = args.max_policy_lag + 1
        return f"Redis holds at most {rollouts} rollout{'s' * (rollouts > 1)} of each actor."
    chunk_bytes = sum(map(_largest_chunk, games)) / len(games)
    megabytes = sizes_of(args).replay.all_slots * chunk_bytes / 1e6
    return (
        f"Full, its {args.memory_capacity:,} transitions take about {megabytes:,.1f} MB in Redis"
        " if they do not compress; images of games take a small part of that."
    )


def _largest_chunk(game: Setting) -> int:
    """Bytes of its frames, uncompressed."""
    args, description = game.args, game.description
    frames = args.chunk_length + args.history_length - 1 + args.multi_step  # of one chunk, at least
    return frames * math.prod(description.frame_shape) * np.dtype(description.frame_dtype).itemsize


def build_source(
    setting: Setting,
    slot: LearnerSlot,
    opened: OpenedRun,
    snapshot: Snapshot | None,
    ranks: Ranks | None = None,
) -> Source[Any]:
    """The source for the agent's store, going on from `snapshot`; `ranks`: of several learners."""
    if not has_replay(setting.args.agent):
        return _rollout_source(setting, slot, snapshot)
    sampler = _sampler(setting, slot, opened, snapshot, ranks)
    sampler.value_bounds = value_bounds(setting)
    return sampler


def value_bounds(setting: Setting) -> ValueBounds:
    """What values can be by the run's targets; none of its rewards is known yet."""
    args, games = setting.args, setting.games or (setting,)
    if args.munchausen == "none":
        return ValueBounds()
    num_actions = max(game.description.num_actions or 1 for game in games)
    entropy = args.munchausen_tau * math.log(num_actions)
    return SoftValueBounds(entropy, -args.munchausen_alpha * args.munchausen_clip)


def replay_dump(args: Args, slot: LearnerSlot) -> ReplayDump:
    """The dump of a run's replay on disk."""
    layout = {name: args.shared()[name] for name in LAYOUT}
    return ReplayDump(Path(args.path_to_results), args.file_name, slot, args.select(ReplayShape), layout)


def _sampler(
    setting: Setting, slot: LearnerSlot, opened: OpenedRun, snapshot: Snapshot | None, ranks: Ranks | None
) -> Sampler:
    """A sampler, its tree rebuilt from Redis; learning begins once the replay is full enough."""
    args, sizes, device = setting.args, sizes_of(setting.args), device_of(setting.args)
    if not opened.replay_kept and args.shards == 1:
        _fill_replay(setting, sizes, slot, snapshot)
    generator = np.random.default_rng(derived_seed(args.seed, SAMPLER))
    if snapshot is not None:
        with restoring():
            generator.bit_generator.state = snapshot["sampler_generator"]
    replay = _replay(setting, sizes, slot, opened, generator, ranks)
    slot.patience(replay.load)
    _allow_learning(args, sizes, slot, opened, snapshot, replay)
    learned = int(snapshot["updates"]) if snapshot else 0
    adds_bonus = args.intrinsic != "none"  # to the rewards, on the CPU
    parts = (
        args.select(SamplerConfig),
        replay,
        sizes.limiter,
        slot.patience(read_counters, slot.client, slot.keys),
        learned,
        int(snapshot["t_learner"]) if snapshot and learned else 0,
        wanted_slots(snapshot, sizes.replay),
        Staging(device).stage if device.type == "cuda" and not (args.gpu_replay or adds_bonus) else None,
    )
    if ranks is None:
        return Sampler(*parts)
    from learning.ranks.leading import LeadingSampler

    return LeadingSampler(ranks, *parts)


def _allow_learning(
    args: Args,
    sizes: ReplaySizes,
    slot: LearnerSlot,
    opened: OpenedRun,
    snapshot: Snapshot | None,
    replay: Replay,
) -> None:
    """Say from which step on learning is due; it is overdue by the steps that were not learned from yet."""
    steps = opened.counters.steps if args.shards == 1 else slot.patience(replay.ingest).steps
    missing = 0  # where the run is finished: nothing is learned from it any more
    if not opened.counters.finished:
        missing = missing_transitions(snapshot, replay.filled_slots, sizes.replay, args.learn_start)
        missing = max(missing, args.batch_size - replay.fill)  # resumed with larger batches
    unlearned = 0 if missing else unlearned_steps(snapshot, steps, sizes.limiter.slack)
    starts_at = steps + missing - unlearned
    refill = opened.counters.refill + (missing if snapshot is not None and snapshot["updates"] else 0)
    slot.patience(allow_learning, slot.client, slot.keys, starts_at or 1, refill)  # 0 stands for "not set"


def _fill_replay(setting: Setting, sizes: ReplaySizes, slot: LearnerSlot, snapshot: Snapshot | None) -> None:
    """Fill the replay of a resumed run from its dump, of a new one from --event-log-in, if there is one."""
    args = setting.args
    if snapshot is not None:
        replay_dump(args, slot).restore()
    elif args.event_log_in:
        path, header = Path(args.event_log_in), log_header_of(args.game, setting.description, args.env_args)
        if args.changed_code:
            header = header._replace(code=read_header(path).code)
        transitions = preseed(path, header, slot, sizes.chunk, sizes.replay.slots, FileProgress(path))
        held = min(transitions, sizes.replay.slots * sizes.replay.chunk_length)
        log.info("The replay begins with %s transitions from %s.", f"{held:,}", path)


def _replay(
    setting: Setting,
    sizes: ReplaySizes,
    slot: LearnerSlot,
    opened: OpenedRun,
    generator: np.random.Generator,
    ranks: Ranks | None,
) -> Replay:
    """The replay: in one place, in shards, or in shards of each game."""
    args = setting.args
    lookahead = Lookahead(args.multi_step, args.discount) if args.intrinsic != "none" else None
    draws = sizes.rule, generator, lookahead, chunk_limits(setting)
    if args.shards == 1 and ranks is None:
        own = slot.client, slot.keys, sizes.replay, slot.epoch, *draws
        return _mirrored(setting, own) if args.gpu_replay else Replay(*own)
    run = slot.patience(read_settings, slot.client, slot.keys)
    assert run is not None, "this learner has just opened it"
    places = slot.shards, sizes.replay, slot.epoch, run.fresh_since, opened.elsewhere
    if ranks is not None:
        return LeadingShards(ranks.share.ranks, *places, *draws)
    if not setting.games:
        return Shards(*places, *draws)
    names = zip(args.games, setting.games, strict=True)
    games = [GameShape(name, game.args.history_length, chunk_limits(game)) for name, game in names]
    return GamesReplay(games, *places, sizes.rule, generator)


def _mirrored(setting: Setting, of_replay: tuple[Any, ...]) -> Replay:
    from learning.mirror.mirror import Mirror
    from learning.mirror.replay import MirroredReplay

    gc.collect()  # where Redis lost a replay, the mirror of that one makes room
    return MirroredReplay(Mirror(_mirror_shape(setting), device_of(setting.args)), *of_replay)


def _rollout_source(setting: Setting, slot: LearnerSlot, snapshot: Snapshot | None) -> RolloutSource:
    """A rollout of every actor, joined along the batch."""
    args = setting.args
    store = slot.patience(RolloutStore, slot.client, slot.keys, slot.epoch, rollout_limits(setting))
    updates, steps = (snapshot["updates"], snapshot["steps_learned"]) if snapshot else (0, 0)
    counters = slot.patience(read_counters, slot.client, slot.keys)
    return RolloutSource(args.select(RolloutSourceConfig), store, updates, steps, counters)
