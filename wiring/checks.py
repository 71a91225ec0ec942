"""Whether a run's agent, games and parameters go together, before anything is built for good."""

from __future__ import annotations

import logging
import math
from dataclasses import fields

import numpy as np

from agents.base import Agent, AgentError
from agents.registry import AGENTS, agent_type, has_replay
from agents.wrappers.intrinsic import RndBonusConfig
from args import Args, UserError
from envs.config import EnvConfig, EnvError
from envs.registry import check_needs, check_reads
from memory.chunks.codec import MAX_RAW_BYTES
from memory.runs.run import Settings
from parameters.declare import flag_of
from wiring.setting import Setting, agent_of, rollout_limits

log = logging.getLogger(__name__)

SWITCHES = (
    ("munchausen", "none"),
    ("noisy_epsilon_steps", 0),
    ("reset_every", 0),
    ("episodic", False),
    ("standardise_advantages", False),
    ("normalise_observations", False),
    ("mirror", False),
    ("layer_norm", False),
    ("l2", 0.0),
)
"""Flags that add a part to an algorithm, and what they are without it."""
DETAILS = {
    "munchausen": ("munchausen_alpha", "munchausen_tau", "munchausen_clip"),
    "noisy_epsilon_steps": ("noisy_epsilon_until",),
}
"""Of SWITCHES, those with flags that change nothing without them."""
READ_BY_OTHERS = frozenset(
    "batch_size discount envs_per_actor id_actor nb_actor replay_frequency reward_clip t_max".split()
)
"""Parameters of some agents that other parts of every run read too."""


def check_agent_fits(setting: Setting) -> None:
    """Check that the run's agent, games and flags go together. An agent is built for it, and dropped.

    Raises:
        AgentError: The agent cannot play or learn here, or makes no use of a flag that was given.
        EnvError: A flag changes nothing in these games, or does not fit their rules, as --opponents without
            a second seat, or a --discount that is not negative where players move by turns.
        UserError: A flag is for games of one kind, and these differ.
    """
    check_reads(setting.args.select(EnvConfig), setting.args.games)
    _check_reward_scale(setting.args)
    _check_switches(setting.args)
    _warn_of_unread(setting.args)
    _warn_of_details(setting.args)
    _check_resets(setting.args)
    _check_sequential(setting.args)
    _check_without_replay(setting.args)
    if setting.games:
        _check_kinds(setting.args)
    if setting.args.opponents != "self":
        _check_opponents(setting)
    agent_of(setting, learning=False)  # before each game's checks: no flag helps an agent that cannot play
    for game, own in zip(setting.args.games, setting.games or (setting,), strict=False):
        if own.description.by_turns:
            _check_turns(setting.args, game)
        elif setting.args.discount < 0:
            raise EnvError(f"A --discount below 0 is for games by turns, which {game} is not.")
        _check_packable(own, game)


def check_played_here(args: Args) -> None:
    """A learner whose actors play elsewhere needs no game itself. Raises EnvError where it plays, too."""
    try:
        check_needs(args.games)
    except EnvError as error:
        if args.serial:
            raise
        log.warning("%s Each actor needs it; this learner does not.", error)


def _check_reward_scale(args: Args) -> None:
    agent = agent_type(args.agent)
    if args.reward_scale != 1 and agent.learns and not _reads(agent, "reward_scale"):
        raise AgentError(
            f"--agent {args.agent} learns from rewards as they are: leave --reward-scale out; --reward-clip"
            " bounds them."
        )


def _check_switches(args: Args) -> None:
    agent = agent_type(args.agent)
    for name, without in SWITCHES:
        if getattr(args, name) != without and agent.learns and not _reads(agent, name):
            readers = ", ".join(other for other, kind in AGENTS.items() if _reads(kind, name))
            raise AgentError(f"{flag_of(name)} is for {readers}: --agent {args.agent} does not use it.")


def _warn_of_unread(args: Args) -> None:
    """Flags that only other agents read are often there for comparison, so they end nothing."""
    own = _parameters(agent_type(args.agent)) | READ_BY_OTHERS
    if args.intrinsic != "none":
        own |= {field.name for field in fields(RndBonusConfig)}
    others = set().union(*map(_parameters, AGENTS.values())) - own
    usual = Args()
    given = [name for name in Args.model_fields if getattr(args, name) != getattr(usual, name)]
    unread = [flag_of(name) for name in given if name.lower() in others]
    if unread and agent_type(args.agent).learns:
        log.warning("--agent %s does not use %s.", args.agent, ", ".join(unread))


def _warn_of_details(args: Args) -> None:
    """Flags that say how a part works, where the agent has it and it is switched off."""
    agent, usual, without = agent_type(args.agent), Args(), dict(SWITCHES)
    for switch, details in DETAILS.items():
        given = [flag_of(name) for name in details if getattr(args, name) != getattr(usual, name)]
        if given and _reads(agent, switch) and getattr(args, switch) == without[switch]:
            log.warning("Without %s nothing reads %s.", flag_of(switch), ", ".join(given))


def _check_without_replay(args: Args) -> None:
    """Raise AgentError where an agent that has no replay is given what only a replay can take."""
    if has_replay(args.agent) or not agent_type(args.agent).learns:
        return
    if args.reward_smoothing:
        raise AgentError(f"--reward-smoothing is for agents with a replay: --agent {args.agent} has none.")
    if args.ckpt_dir and not (args.no_push or args.eval):
        raise AgentError(
            f"--agent {args.agent} learns from what its present policy did, not one in --ckpt-dir: add"
            " --no-push."
        )


def _check_packable(setting: Setting, game: str) -> None:
    """Raise AgentError where what actors push may be larger than any reader accepts."""
    args, env = setting.args, setting.description
    frame_bytes = math.prod(env.frame_shape) * np.dtype(env.frame_dtype).itemsize
    if has_replay(args.agent):  # an episode of one step has two frames
        what, cure = "chunk", "a smaller --chunk-length"
        largest = (2 * args.chunk_length + args.history_length + args.multi_step) * frame_bytes
    else:
        what, cure = "rollout", "a smaller --rollout-length, or fewer --envs-per-actor"
        largest = rollout_limits(setting).raw_bytes(args.envs_per_actor, frame_bytes)
    if largest > MAX_RAW_BYTES:
        raise AgentError(
            f"{game}: a {what} may have {largest / 2**20:,.0f} MiB, and {MAX_RAW_BYTES >> 20} are the most:"
            f" give {cure}."
        )


def _check_resets(args: Args) -> None:
    every, frequency = args.reset_every, args.replay_frequency
    if 0 < every < frequency:
        raise AgentError(f"--reset-every {every} is less than one update, --replay-frequency {frequency}.")
    if every and (first := _first_crossing(args)) > args.T_max - every:
        raise AgentError(
            f"--reset-every {every} resets nothing: after --learn-start {args.learn_start} the first reset"
            f" would be at step {first}, when less than {every} steps of --T-max {args.T_max} remain."
        )


def _check_sequential(args: Args) -> None:
    if args.sequential and agent_type(args.agent).learns and has_replay(args.agent):
        raise AgentError(
            f"--sequential is for agents that learn from rollouts, and --agent {args.agent} has a replay:"
            " --serial has one process, in which acting and learning take turns."
        )


def _first_crossing(args: Args) -> int:
    """T_learner at the first update that crosses a multiple of --reset-every; it starts at --learn-start."""
    every, frequency, start = args.reset_every, args.replay_frequency, args.learn_start
    multiple = (start // every + 1) * every
    return multiple + (start - multiple) % frequency


def _reads(agent: type[Agent], name: str) -> bool:
    return name in _parameters(agent)


def _parameters(agent: type[Agent]) -> set[str]:
    return {field.name for field in fields(agent.config_type)}


def _check_kinds(args: Args) -> None:
    if not has_replay(args.agent):
        raise AgentError(
            f"--agent {args.agent} learns from rollouts of games of one kind: games that differ in frames or"
            " actions are for agents with a replay."
        )
    alone = (
        ("intrinsic", "none"),
        ("opponents", "self"),
        ("save_replay", False),
        ("event_log_in", None),
        ("gpu_replay", False),
    )
    for name, default in alone:
        if getattr(args, name) != default:
            raise UserError(
                f"{flag_of(name)} is for games of one kind, and {' and '.join(args.games)} differ."
            )


def _check_turns(args: Args, game: str) -> None:
    if _reads(agent_type(args.agent), "ext_discount"):
        raise AgentError(f"--agent {args.agent} has returns that do not change sides: --agent ppo fits.")
    if args.discount > 0:
        raise EnvError(
            f"{game} is played by turns, and what is worth much to one player is worth as much less to"
            " the other: give a negative --discount, as -1."
        )
    if args.intrinsic != "none":
        raise AgentError(
            f"--intrinsic {args.intrinsic} has rewards that do not change sides, and {game} is played by"
            " turns: leave it out."
        )
    if args.history_length > 1:
        raise EnvError(
            f"{game} is played by turns, and each frame is seen from the other side than the one before:"
            " --history-length 1 fits."
        )


def _check_opponents(setting: Setting) -> None:
    if not (setting.description.by_turns or setting.description.seats == 2):
        raise EnvError(f"--opponents is for games of two seats, which {setting.args.game} is not.")
    if not has_replay(setting.args.agent):
        raise AgentError(
            f"--agent {setting.args.agent} learns from its own moves alone, not from those of past selves:"
            " --opponents is for agents with a replay."
        )


def check_divided(args: Args) -> None:
    """Raise UserError where actors cannot be divided among the run's games."""
    games = len(args.games)
    if games > 1 and (args.serial or args.nb_actor < games):
        raise UserError(
            f"{games} games need at least as many actors: give --nb-actor {games} or more"
            f"{', and no --serial' if args.serial else ''}."
        )


def check_serial(args: Args) -> None:
    """Raise UserError for what a run in one process cannot be."""
    if not args.serial:
        return
    if args.no_push or args.eval:
        raise UserError(
            f"--serial learns from what its actor plays: leave --{'no-push' if args.no_push else 'eval'} out."
        )
    if args.nb_actor > 1 and len(args.games) == 1:
        raise UserError(
            f"--serial has one actor: leave --nb-actor {args.nb_actor} out; --envs-per-actor plays several"
            " games at a time."
        )


def with_own_agent(args: Args, settings: Settings) -> Settings:
    """The run's settings; a random actor may help a run that learns from a replay."""
    if args.agent != "random":
        return settings
    if not has_replay(str(settings["agent"])):
        raise UserError(f"Random play cannot help {settings['agent']}, which learns from its own play.")
    return {**settings, "agent": "random"}
