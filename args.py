"""Every parameter: its flag, type, default, one sentence with unit and source, and the checks across them.

No room knows this module: launchers hand each room the frozen dataclass it declares, filled by `Args.select`.
Reads at most the one file named by --spec (spec_file.py); no other input or output, no seeding, no torch.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import math
import re
import sys
import typing
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from spec_file import SpecFileError, read_document

Plain = bool | int | float | str | None
Dataclass = TypeVar("Dataclass")

BLOCKS = ("meta", "search")
"""Keys of a spec that are no flags: how run_lab.py repeats the run, and what it varies in a search."""
ELSEWHERE = {
    "learning_rate": "lr",
    "gamma": "discount",
    "buffer_size": "memory_capacity",
    "replay_size": "memory_capacity",
    "env": "game",
    "n_steps": "multi_step",
}
"""What other libraries call some parameters -> their names here."""
UNSYNCHRONISED_ABOVE = 4
"""Actors above which the seed's README recommends --synchronize-actors-with-learner False."""


class UserError(ValueError):
    """A mistake of the user's: one sentence, exit code 2."""


def flag(default: Any, sentence: str, *, shared: bool = False, name: str | None = None, **bounds: Any) -> Any:
    """A parameter. `shared`: the learner publishes it and actors adopt it; `name`: a flag that is not its field's name."""
    return Field(default, description=sentence, json_schema_extra={"shared": shared, "flag": name}, **bounds)


class Group(BaseModel):
    """Parameters of one topic; the docstring's first line heads them in --help."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False, coerce_numbers_to_str=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        number = _kind(cls.model_fields[info.field_name or ""].annotation) in (int, float)
        return no_truth(value) if number else value


class RunArgs(Group):
    """Run."""

    spec: str | None = flag(
        None, "YAML file of parameters (flag names without dashes); flags given besides override it"
    )
    agent: str = flag(
        "iqn",
        "Learning algorithm, a name of agents/registry.py; evaluation also takes random and constant:<action>",
        shared=True,
    )
    rainbow_only: bool = flag(False, "The seed's name for --agent rainbow: C51 instead of IQN")
    game: str = flag(
        "space_invaders",
        "ALE game, Gymnasium id (CartPole-v1), minatar:<game>, maze:<n> … or probe:<name>; or several, as pong,breakout: actors are divided among them",
        shared=True,
    )
    run: str = flag("", "Name under which Redis keeps this run; empty = the game", pattern=r"^[^{}\s]*$")
    seed: int = flag(123, "Seed of every generator, with the process's own number mixed in", ge=0, lt=2**31)
    T_max: int = flag(
        50_000_000,
        "Length of the run, agent steps of all actors (times --action-repeat = 200M frames)",
        shared=True,
        ge=1,
    )
    model: str | None = flag(
        None, "Start afresh from this snapshot's weights; in evaluation, the snapshot to play"
    )
    path_to_results: str = flag(
        "results", "Folder of scores, plots, snapshots and logs; a stopped run resumes from here"
    )
    event_log_in: str | None = flag(
        None,
        "Learner: fill the replay of a new run from this event log before learning (event_log/__main__.py)",
    )
    serial: bool = flag(
        False, "One process alternates actor and learner: exactly repeatable, for study and tests"
    )


class EnvironmentArgs(Group):
    """Environment (SABER by default, Toromanoff et al. 2019, arXiv 1908.04683)."""

    envs_per_actor: int = flag(1, "Environments that each actor steps together", ge=1, le=1024)
    history_length: int = flag(
        0,
        "Frames stacked into a state (4 in DQN); 0 = usual for the game: 4 for images, 1 for vectors",
        shared=True,
        ge=0,
        le=64,
    )
    action_repeat: int = flag(
        4,
        "Emulator frames per agent step (ALE, VizDoom); moves in mazes, pictures in Malmo",
        shared=True,
        ge=1,
    )
    proba_sticky_actions: float = flag(
        0.25,
        "Probability that ALE repeats the last action instead (Machado et al. 2018); 0 = off",
        shared=True,
        ge=0,
        lt=1,
    )
    disable_SABER_mode: bool = flag(
        False,
        "Episodes end after 30 minutes of play instead of SABER's 100 hours and stuck rule",
        shared=True,
    )
    max_episode_steps: int = flag(
        0,
        "ALE, Gymnasium and MinAtar: agent steps after which an episode is truncated (RND: 4500); 0 = as they come",
        shared=True,
        ge=0,
    )
    max_stuck_time: float = flag(
        300.0,
        "SABER: seconds of play (60 frames each) without reward after which an episode stops",
        shared=True,
        gt=0,
    )
    stuck_is_terminal: bool = flag(
        False, "That stop is a termination, as in the seed, instead of a truncation", shared=True
    )
    frame_width: int = flag(
        160,
        "Width of the images of mazes, VizDoom and Malmo, pixels (malmomo: 160)",
        shared=True,
        ge=16,
        le=1920,
    )
    frame_height: int = flag(
        120, "Height of those images, pixels (malmomo: 120)", shared=True, ge=16, le=1080
    )
    reward_clip: float = flag(
        1.0, "Rewards are learned from within +- this; 0 = not clipped", shared=True, ge=0
    )
    reward_smoothing: float = flag(
        0.0,
        "Share of the last step's learned reward that is carried into the next (exponential mean); 0 = off",
        shared=True,
        ge=0,
        lt=1,
    )


class MalmoArgs(Group):
    """Malmo (Minecraft; docs/malmo.md)."""

    malmo_ports: str = flag(
        "9000",
        "Minecraft clients that actors share: ports, or host:port, as 11100,11200 (MalmoEnv's default: 9000)",
        pattern=r"^[^,\s]+(,[^,\s]+)*$",
    )
    overclock_rate: float = flag(
        4.0, "How much faster than real time Minecraft runs (malmomo: 4)", gt=0, le=100
    )
    onscreen_rendering: bool = flag(False, "Minecraft draws to its window as well; slower")
    episode_time_sec: float = flag(
        30.0, "Length of a mission, seconds of Minecraft's own time (malmomo: 30)", shared=True, gt=0
    )
    no_reward_default: float = flag(0.0, "Reward of a step for which Minecraft sends none", shared=True)


class RedisArgs(Group):
    """Redis."""

    host_redis: str = flag("localhost", "Host of the Redis server, or the path of its Unix socket")
    port_redis: int = flag(6379, "TCP port of the Redis server", ge=1, le=65535)
    user_redis: str = flag(
        "", "ACL user (redis_conf/redis_acl.conf); its password is in REDIS_PASSWORD or --redis-password-file"
    )
    redis_password_file: str = flag(
        "", "File with the password; without it the environment variable REDIS_PASSWORD, if set"
    )
    redis_tls: bool = flag(False, "Encrypt, and check the server's certificate")
    redis_ca: str = flag("", "Certificate authority of the server; empty = those that the system trusts")
    redis_cert: str = flag("", "This process's own certificate, where the server asks for one")
    redis_key: str = flag("", "Private key that belongs to --redis-cert")
    redis_patience: float = flag(
        60.0, "Seconds for which a process tries again when Redis is away before it gives up", gt=0
    )
    redis_conf: str = flag(
        "redis_conf/redis_rainbow_6379.conf",
        "Configuration for the server that start_learning.py starts if none answers",
    )


class ActorArgs(Group):
    """Actors."""

    nb_actor: int = flag(1, "Number of actors expected", ge=1, le=4096)
    id_actor: int = flag(
        0, "Number of this actor, from 0; each at most once at a time (-1 is accepted for the learner)", ge=-1
    )
    eval: bool = flag(
        False, "Actor: act without noise, and have its scores plotted apart from those of training"
    )
    no_push: bool = flag(False, "Actor: keep its experience out of the replay")
    post_episode_sleep: float = flag(0.0, "Actor: pause after each episode, seconds", ge=0)
    ckpt_dir: str | None = flag(
        None,
        "Actor: take weights from the newest snapshot in this folder, read again each episode, not from Redis",
    )
    event_log_out: str | None = flag(
        None, "Actor: append its episodes to this event log (event_log/__main__.py)"
    )
    synchronize_actors_with_learner: bool = flag(
        True, "One update per --replay-frequency steps; actors and learner wait for each other", shared=True
    )
    length_actor_buffer: int = flag(
        1000,
        "Upper bound on the transitions an actor holds back before it pushes: shortens --chunk-length where needed",
        shared=True,
        ge=1,
    )
    weight_synchro_frequency: int = flag(
        400,
        "Agent steps between two publications of weights (Ape-X and seed: 400), at most one a second",
        shared=True,
        ge=1,
    )


class ReplayArgs(Group):
    """Replay."""

    memory_capacity: int = flag(1_000_000, "Transitions kept in Redis (Rainbow: 1M)", shared=True, ge=16)
    learn_start: int = flag(
        80_000,
        "Agent steps of random play before learning (seed: 80K; Rainbow's 80K are frames, 20K agent steps)",
        shared=True,
        ge=1,
    )
    replay_frequency: int = flag(
        4, "Agent steps per update (DQN: 4); acting noise is held as long", shared=True, ge=1
    )
    chunk_length: int = flag(
        16, "Transitions per chunk sent to Redis (measured: docs/architecture.md)", shared=True, ge=1, le=4096
    )
    save_replay: bool = flag(
        False,
        "Learner: write the replay to disk too, at a stop, at the end and every --evaluation-interval",
    )
    batch_size: int = flag(32, "Transitions per update (DQN: 32)", ge=1)
    queue_size: int = flag(5, "Batches that the sampler prepares ahead of the learner", ge=1, le=1000)
    priority_exponent: float | None = flag(
        None,
        "Exponent alpha of priorities; default: the agent's own (iqn 0.2, rainbow 0.5, dqn 0: uniform)",
        shared=True,
        ge=0,
        le=1,
    )
    priority_epsilon: float = flag(
        1e-6, "Added to losses before they become priorities (Schaul et al. 2016: small)", shared=True, ge=0
    )
    priority_max: float = flag(
        0.0, "Upper bound of a loss as a priority, before the exponent; 0 = none", shared=True, ge=0
    )
    priority_weight: float = flag(
        0.4,
        "Importance-sampling exponent beta at the start, annealed to 1 at T-max (Schaul et al. 2016)",
        ge=0,
        le=1,
    )
    multi_step: int = flag(3, "Steps of the n-step return (Rainbow: 3)", shared=True, ge=1, le=1024)
    discount: float = flag(0.99, "Discount gamma per agent step (DQN: 0.99)", shared=True, ge=0, le=1)


class RolloutArgs(Group):
    """Rollouts (on-policy agents)."""

    rollout_length: int = flag(
        128, "Vector steps of a rollout (Burda et al. 2018: 128)", shared=True, ge=1, le=65536
    )
    max_policy_lag: int = flag(
        1,
        "Updates by which the weights that a rollout is played with may be old; 0 = --sequential",
        shared=True,
        ge=0,
        le=16,
    )
    sequential: bool = flag(False, "Actors and learner take turns instead of overlapping: --max-policy-lag 0")
    rollout_patience: float = flag(
        60.0, "Seconds for which the learner waits for an actor's rollout before it learns without it", gt=0
    )


class LearnerArgs(Group):
    """Learner."""

    lr: float = flag(5e-5, "Adam's learning rate (IQN: 5e-5; Rainbow: 6.25e-5)", gt=0)
    adam_eps: float = flag(3.125e-4, "Adam's epsilon (IQN: 0.01/32; Rainbow: 1.5e-4)", gt=0)
    max_grad_norm: float = flag(
        0.0, "Norm to which gradients are clipped; 0 = not clipped, as the seed", ge=0
    )
    target_update: int = flag(
        32_000,
        "Agent steps between copies to the target network (seed: 32K; Rainbow's 32K are frames, 8K agent steps)",
        shared=True,
        ge=1,
    )
    polyak: float = flag(
        0.001,
        "naf: share of the online network that the target takes over per update (tau)",
        shared=True,
        gt=0,
        le=1,
    )
    l2: float = flag(0.0, "naf: weight decay, added to the gradient as L2 * weight", ge=0)
    mirror: bool = flag(
        False,
        "naf: learn half of each batch mirrored, image and turn together, where a mirror image is as likely",
    )
    precision: str = flag(
        "float32",
        "Of network passes: float32, bfloat16, or auto: bfloat16 where the processor has units for it",
        pattern="^(float32|bfloat16|auto)$",
    )
    compile: str = flag(
        "none",
        "Learners on a replay: network passes by torch.compile (default), with CUDA graphs too, or none",
        pattern="^(none|default|cuda-graphs)$",
    )


class PolicyArgs(Group):
    """Policy gradients and random network distillation (Burda et al. 2018, arXiv 1810.12894)."""

    epochs: int = flag(4, "ppo_rnd: passes over a rollout (Burda et al.: 4)", ge=1)
    ppo_clip: float = flag(
        0.1, "ppo_rnd: the ratio to the old policy counts within 1 +- this (Burda et al.: 0.1)", gt=0
    )
    entropy_coeff: float = flag(0.001, "Weight of the entropy bonus, per nat (Burda et al.: 0.001)", ge=0)
    gae_lambda: float = flag(0.95, "Lambda of advantages and value targets (Burda et al.: 0.95)", ge=0, le=1)
    baseline: bool = flag(True, "reinforce: subtract a learned value from the return (Williams 1992)")
    reward_scale: float = flag(
        1.0, "reinforce, a2c: rewards are learned from times this, then within --reward-clip", gt=0
    )
    standardise_advantages: bool = flag(
        False, "reinforce, a2c: advantages of an update to mean 0 and deviation 1 (as SLM-Lab does)"
    )
    episodic: bool = flag(
        False, "a2c: learn from steps once their episode has ended, not from every rollout as it comes"
    )
    v_trace: bool = flag(
        True,
        "Correct for rollouts that are some updates old (Espeholt et al. 2018); off: as if they were not",
    )
    ext_discount: float = flag(
        0.999, "ppo_rnd: gamma of extrinsic, episodic returns (Burda et al.: 0.999)", ge=0, le=1
    )
    int_discount: float = flag(
        0.99,
        "ppo_rnd: gamma of intrinsic returns, which no episode's end cuts (Burda et al.: 0.99)",
        ge=0,
        le=1,
    )
    ext_coeff: float = flag(2.0, "ppo_rnd: weight of extrinsic advantages (Burda et al.: 2)", ge=0)
    int_coeff: float = flag(
        1.0, "Weight of intrinsic advantages (Burda et al.: 1), or of --intrinsic's bonus in the reward", ge=0
    )
    rnd_update_proportion: float = flag(
        0.25,
        "Share of the samples that RND's predictor learns from (Burda et al.: 0.25 at 128 environments)",
        gt=0,
        le=1,
    )
    intrinsic: str = flag(
        "none",
        "none, or rnd: a bonus for new frames in the rewards of a replay agent",
        shared=True,
        pattern="^(none|rnd)$",
    )
    rnd_lr: float = flag(1e-4, "Adam's learning rate of --intrinsic's predictor (Burda et al.: 1e-4)", gt=0)


class NetworkArgs(Group):
    """Networks."""

    torso: str = flag(
        "auto",
        "auto, nature, data_efficient, minatar, mlp or flat (models/torso.py)",
        shared=True,
        pattern="^(auto|nature|data_efficient|minatar|mlp|flat)$",
    )
    hidden_size: int = flag(512, "Units of each dueling stream's hidden layer (DQN: 512)", shared=True, ge=1)
    head_sizes: str = flag(
        "100,50",
        "Policy agents and naf: units of the hidden layers above the torso (malmomo: 100,50; Burda et al.: 256,448)",
        shared=True,
        pattern=r"^\d+(,\d+)*$",
    )
    epsilon: float = flag(
        0.4,
        "dqn, double_dqn: share of random actions in the first environment of all (Ape-X: 0.4)",
        shared=True,
        ge=0,
        le=1,
    )
    epsilon_alpha: float = flag(
        7.0,
        "dqn, double_dqn: alpha of epsilon^(1 + alpha i / (N - 1)), environment i of N in all (Ape-X: 7)",
        shared=True,
        ge=0,
    )
    action_noise: str = flag(
        "ou",
        "naf: ou (Ornstein-Uhlenbeck), parameter (Plappert et al. 2018) or none",
        shared=True,
        pattern="^(ou|parameter|none)$",
    )
    ou_theta: float = flag(
        0.15, "naf: pull of the noise to 0 per step (Lillicrap et al. 2016: 0.15)", shared=True, ge=0, le=1
    )
    ou_sigma: float = flag(
        0.2,
        "naf: standard deviation of its steps, in half ranges of the action (DDPG: 0.2)",
        shared=True,
        ge=0,
    )
    parameter_noise_distance: float = flag(
        0.2,
        "naf: root mean square change of actions that parameter noise aims at, half ranges",
        shared=True,
        gt=0,
    )
    noisy_std: float = flag(
        0.1,
        "Initial standard deviation of noisy layers (seed: 0.1; Fortunato et al. 2018: 0.5)",
        shared=True,
        ge=0,
    )
    num_tau_samples: int = flag(
        64, "IQN: N, quantiles of the online network (arXiv 1806.06923 eq. 3)", shared=True, ge=1
    )
    num_tau_prime_samples: int = flag(
        64, "IQN: N', quantiles of the target network (eq. 3)", shared=True, ge=1
    )
    num_quantile_samples: int = flag(
        32, "IQN: K, quantiles averaged to choose an action (eq. 3)", shared=True, ge=1
    )
    quantile_embedding_dim: int = flag(64, "IQN: n, cosines per quantile (eq. 4)", shared=True, ge=1)
    kappa: float = flag(1.0, "iqn, dqn, double_dqn: threshold of the Huber loss (both: 1)", shared=True, gt=0)
    atoms: int = flag(51, "Rainbow: atoms of the value distribution (C51)", shared=True, ge=2)
    V_min: float = flag(-10.0, "Rainbow: lower end of the value support", shared=True)
    V_max: float = flag(10.0, "Rainbow: upper end of the value support", shared=True)


class DeviceArgs(Group):
    """Devices."""

    disable_cuda: bool = flag(False, "Use the CPU even where there is a GPU")
    disable_cudnn: bool = flag(False, "Use PyTorch's own GPU convolutions instead of cuDNN's")
    gpu_number: int = flag(0, "GPU of this process; the CPU where there is none", ge=0)
    gpu_numbers: str | None = flag(
        None, "start_learning.py: GPU of the learner, then of each actor, as 0,0,1,1", pattern=r"^\d+(,\d+)*$"
    )
    gpu_mem_fraction: float = flag(
        1.0,
        "Largest share of the GPU's memory that this process may take (several learners on one GPU)",
        gt=0,
        le=1,
    )
    threads: int = flag(
        0,
        "CPU threads of PyTorch in this process; 0 = one in an actor, with --serial and for a small network,"
        " else all cores",
        ge=0,
    )
    kernels: str = flag(
        "compiled",
        "CPU loops: compiled, or plain: PyTorch's and NumPy's own operations in their place, slower",
        pattern="^(compiled|plain)$",
    )


class ReportingArgs(Group):
    """Reporting and evaluation."""

    log_interval: int = flag(25_000, "Agent steps between two lines of progress", ge=1)
    evaluation_interval: int = flag(
        500_000, "Agent steps between two snapshots, each with the plot drawn anew", ge=1
    )
    snapshot_seconds: float = flag(300.0, "Seconds after which a snapshot is written besides", gt=0)
    evaluation_episodes: int = flag(100, "Episodes of an evaluation (SABER: 100)", ge=1)
    evaluation_envs: int = flag(
        16, "Environments that an evaluation steps together; does not change its result", ge=1
    )
    transfer: bool = flag(
        False, "Evaluation may play another game than the snapshot's, with the same images and actions"
    )
    evaluation_size: int = flag(500, "Accepted for old command lines; the seed never used it")
    eval_noise: bool | None = flag(
        None,
        "Evaluation acts with the agent's noise; default: the agent's own (noisy layers as the seed: on; naf: off)",
    )
    render: bool = flag(False, "Evaluation, or an actor, shows the play in a window, at real speed")
    record: str | None = flag(None, "Evaluation films one episode into this .mp4 file")


GROUPS: tuple[type[Group], ...] = (
    RunArgs, EnvironmentArgs, MalmoArgs, RedisArgs, ActorArgs, ReplayArgs, RolloutArgs, LearnerArgs, PolicyArgs, NetworkArgs, DeviceArgs, ReportingArgs,
)  # fmt: skip


class Args(
    RunArgs,
    EnvironmentArgs,
    MalmoArgs,
    RedisArgs,
    ActorArgs,
    ReplayArgs,
    RolloutArgs,
    LearnerArgs,
    PolicyArgs,
    NetworkArgs,
    DeviceArgs,
    ReportingArgs,
):
    """All parameters of one process, checked."""

    def select(self, kind: type[Dataclass], **others: object) -> Dataclass:
        """A dataclass of some room, filled with the parameters of the same names and with `others`."""
        names = {field.name for field in dataclasses.fields(cast(Any, kind))} - others.keys()
        own = {name.lower(): getattr(self, name) for name in type(self).model_fields}
        return kind(**{name: own[name] for name in names}, **others)

    @property
    def run_name(self) -> str:
        """Name of the run on the server."""
        return self.run or self.game

    @property
    def games(self) -> tuple[str, ...]:
        """Those of --game."""
        return tuple(self.game.split(","))

    def playing(self, game: str) -> Args:
        """These parameters with one of the games alone."""
        return self if game == self.game else self.model_copy(update={"game": game})

    @property
    def file_name(self) -> str:
        """The game as part of a file's name."""
        return re.sub(r"[^A-Za-z0-9_.-]", "_", self.game)

    def shared(self) -> dict[str, Plain]:
        """What the learner publishes and every actor of the run must have alike."""
        return {
            name: getattr(self, name)
            for name, field in type(self).model_fields.items()
            if _extra(field)["shared"]
        }

    def adopt(self, settings: Mapping[str, object]) -> Args:
        """These parameters with the run's settings in place of those not given by the user.

        Raises UserError naming both values when one was given and contradicts the run.
        """
        for name in sorted(self.model_fields_set & settings.keys()):
            if getattr(self, name) != settings[name] and _extra(type(self).model_fields[name])["shared"]:
                mine, theirs = getattr(self, name), settings[name]
                raise UserError(
                    f"{_flag_of(name)} is {mine} here but {theirs} at the learner of run {self.run_name!r}."
                )
        return self.with_defaults(settings)

    def with_defaults(self, settings: Mapping[str, object]) -> Args:
        """These parameters, with `settings` in place of the defaults that the user left as they are."""
        known = {name: value for name, value in settings.items() if name in type(self).model_fields}
        given = {name: getattr(self, name) for name in self.model_fields_set}
        try:
            return Args(**cast(dict[str, Any], {**known, **given}))
        except ValidationError as error:
            raise UserError(_sentence(error)) from error


def parse_args(argv: Sequence[str] | None = None, description: str = "Rainbow-IQN Ape-X.") -> Args:
    """Parameters from the command line and the --spec file; a user's mistake ends the process with exit code 2."""
    try:
        return read_args(sys.argv[1:] if argv is None else argv, description)
    except UserError as error:
        fail(error)


def fail(error: Exception) -> typing.NoReturn:
    """End the process as a user's mistake does: one sentence, exit code 2."""
    complain(error)
    raise SystemExit(2)


def complain(error: Exception) -> None:
    """Say what is wrong, and go on."""
    print(f"error: {error}", file=sys.stderr)


def read_args(argv: Sequence[str], description: str = "") -> Args:
    """As `parse_args`, raising UserError."""
    given = vars(_parser(description).parse_args(argv))
    if not given.get("spec"):
        return checked_args(given)
    flags, written = read_spec(Path(given["spec"]))
    return checked_args({**flags, **given}, {name: written[name] for name in flags.keys() - given.keys()})


def checked_args(values: Mapping[str, Any], written: Mapping[str, str] | None = None) -> Args:
    """Parameters by name, checked one by one and against each other; raises UserError.

    Args:
      written: what a sentence calls those that stand in a file; the others are called by their flags.
    """
    try:
        args = Args(**values)
    except ValidationError as error:
        raise UserError(_sentence(error, written)) from error
    return _resolved(args)


def checked_value(name: str, value: Plain, written: str) -> Plain:
    """The value of one parameter as its own type; raises UserError. What goes with which is not looked at."""
    try:
        plain: Plain = getattr(Args(**cast(dict[str, Any], {name: value})), name)
    except ValidationError as error:
        raise UserError(_sentence(error, {name: written})) from error
    return plain


class SpecFlags(typing.NamedTuple):
    """What a file says about parameters."""

    flags: dict[str, Plain]  # by the names of parameters
    written: dict[str, str]  # what a sentence calls each


def read_spec(path: Path) -> SpecFlags:
    """Parameters in a YAML file: one mapping of flag names (dashes or underscores) to values.

    Beside them `BLOCKS` may stand, which are for run_lab.py; here they are left out.
    """
    document = read_mapping(path)
    if "experiments" in document:
        raise UserError(
            f"The spec {path} holds several experiments: run one with `python run_lab.py run {path} NAME train`."
        )
    if "spec" in document:
        raise UserError(
            f"The spec {path} names another file of flags (spec), which only experiments of run_lab.py may."
        )
    own = {key: document[key] for key in document if key not in BLOCKS}
    flags, written = spec_flags(own, f"The spec {path}")
    return SpecFlags(flags, {name: f"{key} in {path}" for name, key in written.items()})


def read_mapping(path: Path) -> dict[str, Any]:
    """The one mapping that a YAML file holds, less keys that begin with a dot: homes of anchors. Raises UserError."""
    try:
        document = read_document(path)
    except SpecFileError as error:
        raise UserError(str(error)) from error
    if not isinstance(document, dict):
        raise UserError(f"The spec {path} must hold `name: value` lines.")
    return {name: value for name, value in document.items() if not name.startswith(".")}


def spec_flags(document: Mapping[str, Any], where: str) -> SpecFlags:
    """The values of a mapping by the names of parameters; UserError, beginning with `where`, for an unknown one."""
    written = {key.replace("-", "_"): key for key in document}
    unknown = [key for name, key in written.items() if name not in Args.model_fields]
    if unknown:
        raise UserError(f"{where} names an unknown parameter {unknown[0]}{_nearest(unknown[0])}")
    return SpecFlags({name: document[key] for name, key in written.items()}, written)


def _nearest(unknown: str, dashes: str = "") -> str:
    """The end of a sentence about a name that does not exist: the nearest that does, if any is near."""
    name = unknown.replace("-", "_")
    near = [ELSEWHERE[name]] if name in ELSEWHERE else difflib.get_close_matches(name, Args.model_fields, 1)
    return f"; did you mean {dashes}{near[0].replace('_', '-')}?" if near else "."


def _resolved(args: Args) -> Args:
    """Fill what depends on other parameters, and check across them."""
    changes: dict[str, Plain] = {}
    if args.rainbow_only:
        if "agent" in args.model_fields_set and args.agent != "rainbow":
            raise UserError(f"--rainbow-only contradicts --agent {args.agent}.")
        changes["agent"] = "rainbow"
    if args.sequential:
        changes["max_policy_lag"] = 0
    if args.length_actor_buffer < args.chunk_length:
        changes["chunk_length"] = args.length_actor_buffer
    _check(args)
    return args.model_copy(update=changes)


def _check(args: Args) -> None:
    rules = (
        (args.V_min >= args.V_max, f"--V-min {args.V_min} must be below --V-max {args.V_max}."),
        (args.sequential and "max_policy_lag" in args.model_fields_set and args.max_policy_lag > 0, f"--sequential means a lag of 0, not --max-policy-lag {args.max_policy_lag}."),
        (_wrong_gpus(args), f"--gpu-numbers must name {1 + args.nb_actor} GPUs: the learner's, then one per actor (--nb-actor {args.nb_actor})."),
    )  # fmt: skip
    for broken, sentence in rules:
        if broken:
            raise UserError(sentence)
    synchronised = args.synchronize_actors_with_learner
    if synchronised and args.nb_actor > UNSYNCHRONISED_ABOVE:
        warnings.warn(
            "More than 4 actors wait for the learner most of the time; consider --synchronize-actors-with-learner False.",
            stacklevel=2,
        )  # noqa: E501
    if not synchronised and args.nb_actor == 1:
        warnings.warn(
            "One actor without synchronisation: updates per step depend on the speed of the machine, unlike in published single-actor results.",
            stacklevel=2,
        )  # noqa: E501


def _wrong_gpus(args: Args) -> bool:
    return args.gpu_numbers is not None and len(args.gpu_numbers.split(",")) != 1 + args.nb_actor


def _extra(field: FieldInfo) -> dict[str, Any]:
    return cast(dict[str, Any], field.json_schema_extra)


def _flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=36, width=120)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> typing.NoReturn:
        unknown = re.match(r"unrecognized arguments: --([\w-]+)", message)
        if unknown:
            raise UserError(f"There is no flag --{unknown[1]}{_nearest(unknown[1], '--')}")
        raise UserError(f"{message}. --help lists every flag.")


def _parser(description: str) -> argparse.ArgumentParser:
    parser = _Parser(
        description=description,
        formatter_class=_Formatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    for group in GROUPS:
        section = parser.add_argument_group((group.__doc__ or "").rstrip("."))
        for name in group.__annotations__:
            _add_flag(section, name, Args.model_fields[name])
    return parser


def _add_flag(section: argparse._ArgumentGroup, name: str, field: FieldInfo) -> None:
    short = ["-p_red"] if name == "port_redis" else []
    kind = _kind(field.annotation)
    default = "" if field.default in (None, "") else f" (default: {field.default})"
    sentence = f"{field.description}{default}".replace("%", "%%")
    optional: dict[str, Any] = {"nargs": "?", "const": True} if kind is bool else {}
    section.add_argument(
        *short, _flag_of(name), dest=name, type=_boolean if kind is bool else str, help=sentence,
        metavar=kind.__name__.upper(), **optional,
    )  # fmt: skip


def _kind(annotation: object) -> type:
    options = [option for option in typing.get_args(annotation) if option is not type(None)]
    return cast(type, options[0] if options else annotation)


def _boolean(word: str) -> bool:
    words = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
    if word.lower() not in words:
        raise argparse.ArgumentTypeError(f"{word!r} is not True, False, 1 or 0")
    return words[word.lower()]


def no_truth(value: Any) -> Any:
    """Refuse true and false where a number belongs: Python would take them for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("input should be a number")
    return value


def _sentence(error: ValidationError, written: Mapping[str, str] | None = None) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0])
    return f"{(written or {}).get(name, _flag_of(name))} {problem(first)}"


def problem(details: ErrorDetails) -> str:
    """What a value is, what it should be, and how to write it where that is plain: the end of a sentence."""
    value, message = details["input"], details["msg"].removeprefix("Value error, ")
    limits = details.get("ctx", {})
    match details["type"]:
        case "int_type" | "int_parsing" if (number := _integer(value)) is not None:
            message = f"input should be a valid integer: write {number}"
        case "string_type" if isinstance(value, list):
            message = f"input should be text: write {','.join(map(str, value))}"
        case "tuple_type":
            message = "input should be a list" + (
                f", as [{value}]" if isinstance(value, str | int | float) else ""
            )
        case "missing":
            message = "it should hold one more"
        case "too_short":
            message = f"it should hold at least {limits['min_length']} of them"
        case "too_long":
            message = f"it should hold at most {limits['max_length']} of them"
    return f"got {value!r}: {message[0].lower()}{message[1:]}."


def _integer(value: object) -> int | None:
    """The one that `value` means, as '1e5' does, in which YAML sees no number; None where it means none."""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
