"""Several learners of one run: torchrun starts this process as one of them, or `start_learners` does."""

from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, launch_agent

from agents.base import Agent
from agents.parts.devices import Staging
from agents.parts.off_policy import OffPolicyAgent
from agents.registry import agent_type, has_replay
from args import Args, UserError
from learning.ranks.following import FetchedRows, follow
from learning.ranks.group import LEADER, TIMEOUT, Ranks, reason
from learning.ranks.lost import RankLost
from memory.replay.following import RowReader
from memory.server.patience import Patience
from supervision.child import follow_parent
from supervision.process import USER_ERROR, Stop, ended_by_signals, stop_signals
from wiring.setting import build_agent, chunk_limits, connect_redis, device_of, set_up_torch, setting_of
from wiring.shards import connect_shards

STARTER = "LEARNERS_STARTED_BY"
"""Name of the variable with the number of the process that has called `start_learners`: it may have ended
already.
"""
SAVES_WITHIN_S = 600
"""How long (seconds) the leader may take to save once another learner has ended, as
`run_plan.SAVE_REPLAY_LIMIT_S`.
"""


def check_ranks(args: Args, count: int) -> None:
    """Raise UserError where `count` learners cannot learn this run together."""
    if args.learners not in (1, count):
        raise UserError(f"--learners {args.learners} and torchrun's {count} processes are not the same.")
    if not has_replay(args.agent):
        raise UserError(
            f"{count} learners divide the batches of a replay, and {args.agent} learns from rollouts."
        )
    for flag, is_given in (("--intrinsic", args.intrinsic != "none"), ("--gpu-replay", args.gpu_replay)):
        if is_given:
            raise UserError(f"{flag} has one learner: leave it out, or the other {count - 1} learners.")
    if not issubclass(agent_type(args.agent), OffPolicyAgent):
        raise UserError(f"{count} learners need an agent that derives from OffPolicyAgent, not {args.agent}.")
    if len(args.games) > 1 and setting_of(args).games:
        raise UserError(f"{args.game}: games with different frames or actions need one learner, not {count}.")
    if args.serial:
        raise UserError(f"--serial runs in one process and cannot have {count} learners.")
    if args.batch_size % count:
        raise UserError(f"--batch-size {args.batch_size} is no multiple of the {count} learners.")


def _check_gpus(args: Args, count: int) -> None:
    """Raise UserError where learners of this machine outnumber its GPUs."""
    if device_of(args).type == "cuda" and torch.cuda.device_count() < int(
        os.environ.get("LOCAL_WORLD_SIZE") or count
    ):
        raise UserError(
            f"{count} learners need a GPU each, or --disable-cuda; {torch.cuda.device_count()} are here."
        )


def start_learners(args: Args, script: str, words: list[str]) -> int:
    """Run `script` with `words` by torchrun as --learners processes of this machine, which are asked to end
    when this one is.

    Returns:
        The exit code.

    Raises:
        UserError: They cannot learn together.
    """
    check_ranks(args, args.learners)
    _check_gpus(args, args.learners)
    for number in stop_signals():
        signal.signal(number, lambda *_: _ask_children_to_end())
    os.environ[STARTER] = str(os.getpid())
    os.environ.setdefault("OMP_NUM_THREADS", str(max(len(os.sched_getaffinity(0)) // args.learners, 1)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=args.learners,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=0,
        signals_to_handle="SIGQUIT",  # at the others it would say nothing of how the learners end
        shutdown_timeout=SAVES_WITHIN_S,
    )
    try:
        launch_agent(config, sys.executable, [script, *words])
    except ChildFailedError as failed:
        return _exit_code({failure.exitcode for failure in failed.failures.values()})
    return 0


@contextmanager
def ends_at_once() -> Iterator[None]:
    """End the process with the block. A thread of gloo's that still lives when Python ends aborts it."""
    code: object = 0
    try:
        yield
    except SystemExit as ending:
        code = ending.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def learn_together(args: Args, stop: Stop, lead: Callable[[Args, Stop, Ranks], None]) -> None:
    """Be the learner that torchrun says: the first leads, the others follow until the run is over."""
    count, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    try:
        check_ranks(args, count)
        _check_gpus(args, count)
    except UserError:
        if int(os.environ["RANK"]) == LEADER:
            raise
        raise SystemExit(USER_ERROR) from None
    args = args.model_copy(update={"gpu_number": args.gpu_number + local})
    with joined(args) as ranks:
        if ranks.share.rank == LEADER:
            try:
                lead(args, stop, ranks)
            finally:
                ranks.over()
        else:
            follow(ranks, lambda: _follower(args, ranks, stop))


@contextmanager
def joined(args: Args) -> Iterator[Ranks]:
    """Join torch's process group; a signal ends this process while it waits for the others."""
    follow_parent(int(os.environ.get(STARTER, os.getppid())))()
    if os.environ["LOCAL_WORLD_SIZE"] == os.environ["WORLD_SIZE"]:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # nobody elsewhere need reach it
    device = device_of(args)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    try:
        with ended_by_signals():
            dist.init_process_group(backend, timeout=TIMEOUT)
    except RuntimeError as error:
        raise RankLost(f"The learners did not find each other ({reason(error)}).") from error
    ranks = Ranks()
    try:
        yield ranks
    finally:
        ranks.leave()


def _follower(args: Args, ranks: Ranks, stop: Stop) -> tuple[Agent, Callable[[], FetchedRows]]:
    """An agent that has joined, and what begins to fetch its rows."""
    setting = setting_of(args)
    agent = build_agent(setting.args, setting.problem, learning=True)
    set_up_torch(setting.args, agent)
    ranks.join(agent)
    shards = connect_shards(setting.args, connect_redis(setting.args, stop), stop)
    patience, device = Patience(args.redis_patience, stop), device_of(args)
    stage = Staging(device).stage if device.type == "cuda" else None

    def fetch() -> FetchedRows:
        reader = patience(RowReader, shards, setting.args.history_length, chunk_limits(setting))
        return FetchedRows(ranks, reader, patience, args.batch_size, stage)

    return agent, fetch


def _exit_code(codes: set[int]) -> int:
    """The exit code for all learners, from those that are not 0: a user's mistake goes before a fault."""
    if codes == {-signal.SIGTERM}:  # asked to end before there was anything to save
        return 0
    return USER_ERROR if USER_ERROR in codes else 1


def _ask_children_to_end() -> None:
    """SIGTERM to all processes that this one has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = stat.read_text().rpartition(") ")[2].split()[1]
            if int(parent) == os.getpid():
                os.kill(int(stat.parent.name), signal.SIGTERM)
