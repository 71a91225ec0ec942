"""What every process of a run derives from its parameters first: environment, problem, device, agent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from agents.base import Agent, AgentError, OtherNetworkError, Problem, ReplayAgent
from agents.registry import agent_type
from agents.wrappers.intrinsic import RndBonusConfig, with_intrinsic
from agents.wrappers.kinds import KindsAgent, part_of
from args import Args, Plain, UserError
from envs.config import EnvConfig, EnvDescription
from envs.registry import describe_env
from kernels.choice import use as use_kernels
from learning.saved.snapshot import Snapshot, SnapshotError, check_holds, check_origin, load_snapshot
from memory.chunks.chunk import ChunkLimits
from memory.rollouts.rollout import RolloutLimits
from memory.server.connection import Client, RedisConfig, connect
from models.parts import of_parts
from models.trunk import with_trunk
from parameters.declare import flag_of
from supervision.process import ended_by_signals
from wiring.code import check_code

LEARNER, ACTOR, SAMPLER, SEAT = 0, 1, 2, 3
"""Numbers that the path of a generator under the run's seed begins with."""
LARGE_NETWORK = 1_000_000
"""Weights from which on an update takes less time with all cores than with one. On two cores it took 141 ms
instead of 227 by rainbow_iqn.yaml (6.7 million), but 23 instead of 15 by rainbow_iqn_cpu.yaml (0.8 million).
"""
CHANGEABLE = frozenset(("t_max", "eval_noise", "evaluation_epsilon"))
"""Settings that may change within a run: how long it is, and how its snapshots are judged."""


def derived_seed(seed: int, *path: int) -> int:
    """A 63-bit seed under the run's `seed`.

    `path`: LEARNER, ACTOR, SAMPLER or SEAT, then what tells generators of that kind apart.
    """
    return int(np.random.SeedSequence(seed, spawn_key=path).generate_state(1, np.uint64)[0] >> np.uint64(1))


class Setting(NamedTuple):
    """Parameters without gaps, and the environment and the agent's problem that follow from them."""

    args: Args
    description: EnvDescription
    problem: Problem
    games: tuple[Setting, ...] = ()
    """The setting of each game, where they are of several kinds; the fields above are the first one's."""

    def of_actor(self, id_actor: int) -> Setting:
        """The setting of the game that an actor plays."""
        return self.games[id_actor % len(self.games)] if self.games else self

    def with_args(self, **changes: Plain) -> Setting:
        """With other values of these parameters, in each game."""
        games = tuple(game.with_args(**changes) for game in self.games)
        return self._replace(args=self.args.model_copy(update=changes), games=games)


def setting_of(args: Args) -> Setting:
    """Look at the environment, and fill what the agent or the environment decides where the user did not.

    Raises EnvError. Whether the agent can play there is checked by `wiring.checks`.
    """
    exponent = args.priority_exponent
    exponent = agent_type(args.agent).priority_exponent if exponent is None else exponent
    args = args.model_copy(update={"priority_exponent": exponent})
    descriptions = [describe_env(args.playing(game).select(EnvConfig)) for game in args.games]
    if all(each == descriptions[0] for each in descriptions):
        return _setting(args, descriptions[0])
    games = tuple(_setting(args, description) for description in descriptions)
    return games[0]._replace(args=args, games=games)


def setting_of_run(args: Args) -> Setting:
    """As `setting_of`, but games of several kinds get shards of the replay each, and a trunk to share.

    Raises EnvError, and UserError where --shards does not fit.
    """
    with ended_by_signals():  # an environment may wait for ever while it is built
        setting, count = setting_of(args), len(args.games)
    if not setting.games:
        return setting
    if args.shards > 1 and args.shards % count:
        raise UserError(
            f"Games that differ in frames or actions have shards of their own: give --shards {count}, or a"
            f" multiple of it, not {args.shards}."
        )
    filled = {
        "shards": args.shards if args.shards > 1 else count,
        "trunk_size": args.trunk_size or args.hidden_size,
    }
    return setting.with_args(**filled)


def _setting(args: Args, description: EnvDescription) -> Setting:
    history_length = args.history_length or description.history_length
    problem = Problem(
        (history_length, *description.frame_shape),
        description.frame_dtype,
        description.num_actions,
        description.action_low,
        description.action_high,
        description.mirrored_action,
        description.masked,
        description.parts,
    )
    return Setting(args.model_copy(update={"history_length": history_length}), description, problem)


def device_of(args: Args) -> torch.device:
    """The GPU named by --gpu-number, or the CPU where there is none or --disable-cuda is given."""
    if args.disable_cuda or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", args.gpu_number % torch.cuda.device_count())


def set_up_torch(args: Args, agent: Agent, acting: bool = False) -> None:
    """Settings of this whole process: kernels, cuDNN, share of the GPU's memory, CPU threads of PyTorch.

    Without --threads an actor and a serial run take one thread, and so does a small network: its threads
    would wait for each other longer than they work. For a large one PyTorch keeps one for each core.
    """
    use_kernels(args.kernels)
    torch.backends.cudnn.enabled = not args.disable_cudnn
    device = device_of(args)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # for what works on the current device, as recording a CUDA graph does
        torch.cuda.set_per_process_memory_fraction(args.gpu_mem_fraction, device)
    num_weights = sum(weight.numel() for weight in agent.acting_weights().values())
    is_small = num_weights < LARGE_NETWORK and device.type == "cpu"
    if args.threads or acting or args.serial or is_small:
        torch.set_num_threads(args.threads or 1)


def chunk_limits(setting: Setting) -> ChunkLimits:
    """The frames and actions that chunks of this environment may hold."""
    env = setting.description
    return ChunkLimits(env.frame_shape, env.frame_dtype, env.num_actions, env.action_low, env.action_high)


def rollout_limits(setting: Setting) -> RolloutLimits:
    """The shape of this environment's rollouts."""
    args = setting.args
    return RolloutLimits(args.rollout_length, args.history_length, chunk_limits(setting))


def agent_of(setting: Setting, learning: bool) -> Agent:
    """The run's agent, for all of its games. Raises AgentError."""
    if not setting.games:
        return build_agent(setting.args, setting.problem, learning)
    parts: dict[str, ReplayAgent] = {}
    of_problem: dict[Problem, ReplayAgent] = {}
    for game, own in zip(setting.args.games, setting.games, strict=True):
        if own.problem not in of_problem:
            of_problem[own.problem] = _part(game, own, learning)
        parts[game] = of_problem[own.problem]
    return _joined(parts, setting.args.games[0])


def acting_agent(setting: Setting, id_actor: int) -> Agent:
    """The agent as an actor has it: in the game that it plays."""
    own, games = setting.of_actor(id_actor), setting.args.games
    count = len(games)
    place, actors = id_actor // count, -(-setting.args.nb_actor // count)  # among the actors of its game
    own = own.with_args(id_actor=place, nb_actor=actors)
    if not setting.games:
        return build_agent(own.args, own.problem, learning=False)
    game = games[id_actor % count]
    return _joined({game: _part(game, own, learning=False)}, game)


def _part(game: str, own: Setting, learning: bool) -> ReplayAgent:
    try:
        part = build_agent(own.args, own.problem, learning)
    except AgentError as error:
        raise AgentError(f"{game}: {error}") from error
    assert isinstance(part, ReplayAgent)
    return part


def _joined(parts: Mapping[str, ReplayAgent], game: str) -> Agent:
    return KindsAgent(parts, game) if parts[game].learns else parts[game]


def build_agent(args: Args, problem: Problem, learning: bool) -> Agent:
    """The agent named by --agent, with --intrinsic's rewards."""
    kind, device, seed = agent_type(args.agent), device_of(args), derived_seed(args.seed, LEARNER)
    torso = with_trunk(of_parts(args.torso, problem.parts), args.trunk_size)
    config: object = args.model_copy(update={"torso": torso}).select(kind.config_type)
    agent = kind(problem, config, device, seed, learning)
    bonus = args.select(RndBonusConfig)
    return with_intrinsic(args.intrinsic, agent, problem, bonus, device, seed, learning)


class Restored(NamedTuple):
    """An agent that can act."""

    agent: Agent
    setting: Setting
    snapshot: Snapshot

    @property
    def eval_noise(self) -> bool:
        """Whether an evaluation is with noise: as asked for here, or of the run, else the agent's own."""
        asked = self.setting.args.eval_noise
        return self.agent.eval_noise if asked is None else asked


def restore_agent(path: Path, args: Args) -> Restored:
    """The agent of a snapshot, in the environment it was trained in as far as no flag says otherwise.

    Raises SnapshotError where the snapshot cannot be read or is of another game or agent than was asked for,
    EnvError and AgentError.
    """
    snapshot = load_snapshot(path)
    check_holds(path, snapshot, ("settings", "acting_weights"))
    given = {name: getattr(args, name) for name in args.model_fields_set}
    if "agent" in given:
        check_origin(path, snapshot, {"agent": given["agent"]})
    if "game" in given and not args.transfer and given["game"] not in _games_of(path, snapshot):
        check_origin(path, snapshot, {"game": given["game"]})
    where = f"The snapshot {path}"
    check_code(args, snapshot["settings"], where, same_arguments=False)
    setting = setting_of(args.with_defaults(snapshot["settings"], where)).of_actor(0)
    agent = build_agent(setting.args, setting.problem, learning=False)
    set_up_torch(setting.args, agent)
    with naming_flags(setting.args, snapshot["settings"]):
        agent.load_acting_weights(part_of(snapshot["acting_weights"], setting.args.game))
    return Restored(agent, setting, snapshot)


@contextmanager
def naming_flags(args: Args, found: Mapping[str, object]) -> Iterator[None]:
    """An error of weights that do not fit names the flags that were others in `found`, a snapshot's."""
    try:
        yield
    except OtherNetworkError as error:
        rooms = (EnvConfig, RndBonusConfig, agent_type(args.agent).config_type)
        names = {field.name for room in rooms for field in fields(room)} - CHANGEABLE
        odd = _differing(args, found, names | {"agent", "history_length", "trunk_size", "intrinsic"})
        made = f"; made with {' and '.join(odd)}" if odd else ""
        raise AgentError(f"{str(error).rstrip('.')}{made}.") from error


def changed_flags(args: Args, found: Mapping[str, object]) -> list[str]:
    """Flags of a whole run that were others in `found`, a snapshot's, but those that a person may change."""
    return _differing(args, found, {name.lower() for name in args.shared()} - CHANGEABLE)


def _differing(args: Args, found: Mapping[str, object], names: Container[str]) -> list[str]:
    return [
        f"{flag_of(name)} {_shown(found[name])} (here {_shown(getattr(args, name))})"
        for name in type(args).model_fields
        if name.lower() in names and name in found and found[name] != getattr(args, name)
    ]


def _shown(value: object) -> object:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value


def games_to_play(args: Args) -> tuple[str, ...]:
    """The games of --game where it was given; else those of --model's snapshot. Raises SnapshotError."""
    if not args.model or "game" in args.model_fields_set:
        return args.games
    snapshot = load_snapshot(Path(args.model))
    check_holds(Path(args.model), snapshot, ("settings",))
    return _games_of(Path(args.model), snapshot)


def _games_of(path: Path, snapshot: Snapshot) -> tuple[str, ...]:
    game = snapshot["settings"].get("game")
    if not isinstance(game, str):
        raise SnapshotError(f"The snapshot {path} is damaged: its settings name no game.")
    return tuple(game.split(","))


def results_folder(args: Args) -> Path:
    """--path-to-results, made where it is missing. Raises UserError where nothing can be written to it."""
    folder = Path(args.path_to_results)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        reason = f"({error.strerror}): check --path-to-results."
        raise UserError(f"Nothing can be written to {folder} {reason}") from error


def connect_redis(args: Args, stopped: Callable[[], bool]) -> Client:
    """A client whose server has answered."""
    return connect(args.select(RedisConfig), args.redis_patience, stopped)
