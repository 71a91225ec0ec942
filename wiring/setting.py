"""What every process of a run works out from its parameters first: environment, problem, device, agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple

import torch

from agents.base import Agent, Problem
from agents.parts.intrinsic import RndBonusConfig, with_intrinsic
from agents.registry import agent_type
from args import Args, UserError
from envs import EnvConfig, EnvDescription, EnvError, canonical_game, describe_env
from memory.server.connection import Client, RedisConfig, connect
from supervision.seeding import derived_seed

LEARNER, ACTOR, SAMPLER = 0, 1, 2
"""First step of a generator's path under the run's seed."""


class Setting(NamedTuple):
    """What every process of a run works out from its parameters first."""

    args: Args
    description: EnvDescription
    problem: Problem


def canonical(args: Args) -> Args:
    """`args` with the one name of each of its games, by which runs and files are called. Raises EnvError."""
    games = [canonical_game(game) for game in args.games]
    twice = next((game for game in games if games.count(game) > 1), None)
    if twice is not None:
        raise EnvError(f"--game names {twice} twice: each game of a run is named once.")
    return args.playing(",".join(games))


def setting_of(args: Args) -> Setting:
    """Look at the environment, and fill what the agent or the environment decides where the user did not.

    Raises EnvError, or AgentError where agent and environment do not fit.
    """
    description = _shared_description(args)
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


def _shared_description(args: Args) -> EnvDescription:
    """What all games of a run are to its one network. Raises EnvError where two of them differ."""
    first, *others = (describe_env(args.playing(game).select(EnvConfig)) for game in args.games)
    for game, other in zip(args.games[1:], others, strict=True):
        for field in fields(first):
            one, two = getattr(first, field.name), getattr(other, field.name)
            if one != two:
                raise EnvError(
                    f"{args.games[0]} and {game} cannot share a network: {field.name} is {one} of the first"
                    f" and {two} of the second."
                )
    return first


def check_divided(args: Args) -> None:
    """Raises UserError where actors cannot be divided among the run's games."""
    games = len(args.games)
    if games > 1 and (args.serial or args.nb_actor < games):
        raise UserError(
            f"{games} games need at least as many actors: give --nb-actor {games} or more"
            f"{', and no --serial' if args.serial else ''}."
        )


def game_of_actor(args: Args) -> str:
    """The game that actor --id-actor plays: they take turns by their numbers."""
    return args.games[args.id_actor % len(args.games)]


def coordinates(args: Args) -> dict[str, int | str]:
    """Agent, environment and body that an actor's experience is of, as SLM-Lab counts them.

    There is one learning agent so far; the body within an actor is its environment's place.
    """
    return {"agent": 0, "game": game_of_actor(args), "actor": args.id_actor}


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
