"""What every process of a run works out from its parameters first: environment, problem, device, agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from agents.base import Agent, Problem
from agents.intrinsic import RndBonusConfig, with_intrinsic
from agents.registry import agent_type
from args import Args
from envs import EnvConfig, EnvDescription, canonical_game, describe_env
from memory.connection import Client, RedisConfig, connect
from runtime.seeding import derived_seed

LEARNER, ACTOR, SAMPLER = 0, 1, 2
"""First step of a generator's path under the run's seed."""


class Setting(NamedTuple):
    """What every process of a run works out from its parameters first."""

    args: Args
    description: EnvDescription
    problem: Problem


def canonical(args: Args) -> Args:
    """`args` with the one name of its game, by which runs and files are called. Raises EnvError."""
    game = canonical_game(args.game)
    return args if game == args.game else args.model_copy(update={"game": game})


def setting_of(args: Args) -> Setting:
    """Look at the environment, and fill what the agent or the environment decides where the user did not.

    Raises EnvError, or AgentError where agent and environment do not fit.
    """
    description = describe_env(args.select(EnvConfig))
    history_length = args.history_length or description.history_length
    exponent = args.priority_exponent
    if exponent is None:
        exponent = agent_type(args.agent).priority_exponent
    args = args.model_copy(update={"history_length": history_length, "priority_exponent": exponent})
    problem = Problem(
        (history_length, *description.frame_shape),
        description.frame_dtype,
        description.num_actions,
        description.action_low,
        description.action_high,
        description.mirrored_action,
    )
    build_agent(args, problem, learning=False)  # what does not fit is refused before anything starts
    return Setting(args, description, problem)


def device_of(args: Args) -> torch.device:
    """The GPU named by --gpu-number, or the CPU; also sets PyTorch's threads and share of memory."""
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.backends.cudnn.enabled = not args.disable_cudnn
    if args.disable_cuda or not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", args.gpu_number % torch.cuda.device_count())
    torch.cuda.set_per_process_memory_fraction(args.gpu_mem_fraction, device)
    return device


def build_agent(args: Args, problem: Problem, learning: bool) -> Agent:
    """The agent named by --agent, with --intrinsic's rewards."""
    kind, device, seed = agent_type(args.agent), device_of(args), derived_seed(args.seed, LEARNER)
    agent = kind(problem, args.select(kind.config_type), device, seed, learning)
    bonus = args.select(RndBonusConfig)
    return with_intrinsic(args.intrinsic, agent, problem, bonus, device, seed, learning)


def connect_redis(args: Args, stopped: Callable[[], bool]) -> Client:
    """A client whose server has answered."""
    return connect(args.select(RedisConfig), args.redis_patience, stopped)
