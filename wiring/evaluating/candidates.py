"""Who is evaluated, and against whom: snapshots, past selves, random and constant actions."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple, cast

from safetensors.torch import load_file

from agents.base import Agent, Curious
from args import Args, UserError
from envs.config import EnvConfig
from envs.registry import describe_env
from evaluation.film import FrameMetric
from evaluation.policies import AgentPolicy, EpsilonPolicy, Policy, baseline_policy, is_baseline
from evaluation.result import file_digest
from learning.pool import pool_files
from learning.saved.snapshot import check_holds
from wiring.setting import Restored, restore_agent

CLOCKS = ("t_actors", "t_learner", "updates")
"""Parts of a snapshot by which an evaluation tells how old it is."""


class Candidate(NamedTuple):
    """The policy that is evaluated, its parameters, and what the result's file says of it."""

    policy: Policy
    args: Args
    origin: dict[str, object]
    metric: FrameMetric | None = None  # drawn under a film

    @property
    def name(self) -> str:
        """What a match calls it."""
        return f"update {self.origin['updates']}" if self.origin["model"] else self.args.agent


class Opponent(NamedTuple):
    """Whom --against names, and what to call it."""

    name: str
    policy: Policy
    updates: int = 0  # of the learner, when a past self was saved


def baseline_candidate(args: Args) -> Candidate:
    """Random or constant actions. Raises UserError where a snapshot is named, which would not be played."""
    if args.model:
        flag = "--kept" if args.kept else "--model"
        raise UserError(f"--agent {args.agent} plays without a snapshot: leave it or {flag} out.")
    policy = baseline_policy(args.agent, describe_env(args.select(EnvConfig)))
    return Candidate(policy, args, {"agent": args.agent, "model": None, **_episodes(args)})


def snapshot_candidate(args: Args) -> Candidate:
    """The agent of --model in the environment it was trained in, as far as no flag says otherwise."""
    if not args.model:
        raise UserError("Name a snapshot with --model, or play --agent random or --agent constant:<action>.")
    restored = restore_agent(Path(args.model), args)
    agent, setting, snapshot = restored
    check_holds(Path(args.model), snapshot, CLOCKS)
    policy: Policy = AgentPolicy(agent, setting.args.history_length, restored.eval_noise)
    if setting.args.evaluation_epsilon:
        policy = EpsilonPolicy(policy, setting.description, setting.args.evaluation_epsilon)
    metric = FrameMetric("intrinsic reward", agent.intrinsic_rewards) if isinstance(agent, Curious) else None
    return Candidate(policy, setting.args, _origin(args, restored), metric)


def _origin(args: Args, restored: Restored) -> dict[str, object]:
    snapshot, epsilon = restored.snapshot, restored.setting.args.evaluation_epsilon
    clocks = {name: snapshot[name] for name in CLOCKS}
    agent = snapshot["settings"]["agent"]
    noise = {"eval_noise": restored.eval_noise, "evaluation_epsilon": epsilon}
    model = {"model": args.model, "model_sha256": file_digest(Path(args.model or ""))}
    return {"agent": agent, **model, **noise, **_episodes(args), **clocks}


def _episodes(args: Args) -> dict[str, object]:
    return {"seed": args.seed, "evaluation_episodes": args.evaluation_episodes}


def snapshot_text(origin: dict[str, object]) -> str:
    """How old the snapshot is."""
    return f"snapshot of update {origin['updates']:,}, T_actors {origin['t_actors']:,}"


def evaluated_name(args: Args) -> str:
    """The game, for a snapshot; for a baseline with its name, so that one keeps the other's result."""
    if not is_baseline(args.agent):
        return args.file_name
    return f"{args.file_name}_{args.agent.replace(':', '_')}"


def opponents_of(args: Args, candidate: Candidate, config: EnvConfig) -> Iterator[Opponent]:
    """The opponents that --against names."""
    name = args.against or "random"
    if is_baseline(name):
        yield Opponent(name, baseline_policy(name, describe_env(config)))
    elif name != "pool":
        yield Opponent(name, _rival(args, name, candidate))
    elif is_baseline(args.agent):
        raise UserError(
            "--against pool is for a snapshot, beside which its past selves lie: name it with --model, and"
            f" leave out --agent {args.agent}."
        )
    else:
        members = pool_files(Path(args.model or "").parent, candidate.args.file_name)
        if members.pop(cast(int, candidate.origin["updates"]), None):
            print(f"The pool has {args.model} itself, {candidate.name}: that member is left out.")
        if not members:
            raise UserError(
                f"There is no pool of past selves beside {args.model} (--opponents past makes one)."
            )
        for updates, path in members.items():
            past = restore_agent(Path(args.model or ""), args).agent
            past.load_acting_weights(load_file(path))
            yield Opponent(f"update {updates}", _as_noisy(past, candidate, config), updates)


def _rival(args: Args, name: str, candidate: Candidate) -> Policy:
    """The snapshot's agent, which must see what the candidate sees."""
    near = get_close_matches(name.lower(), ("random", "pool"), 1)
    if near and not Path(name).exists():
        raise UserError(f"There is no snapshot {name}: did you mean --against {near[0]}?")
    own = args.model_copy(update={"model": name, "game": candidate.args.game})
    if is_baseline(args.agent):
        own.model_fields_set.discard("agent")  # the candidate's
    rival = snapshot_candidate(own)
    theirs, ours = (describe_env(each.args.select(EnvConfig)) for each in (rival, candidate))
    if (theirs.frame_shape, theirs.num_actions) != (ours.frame_shape, ours.num_actions):
        raise UserError(
            f"The snapshot {name} plays {candidate.args.game} with frames of {theirs.frame_shape} and"
            f" {theirs.num_actions} actions, {args.model or args.agent} with {ours.frame_shape} and"
            f" {ours.num_actions}: they cannot play each other."
        )
    return rival.policy


def _as_noisy(past: Agent, candidate: Candidate, config: EnvConfig) -> Policy:
    """A past self as noisy as the candidate is."""
    noisy, epsilon = bool(candidate.origin["eval_noise"]), candidate.origin["evaluation_epsilon"]
    policy = AgentPolicy(past, candidate.args.history_length, noisy)
    return EpsilonPolicy(policy, describe_env(config), cast(float, epsilon)) if epsilon else policy
