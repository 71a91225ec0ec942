"""Parameters of a run as a whole, and of the machine that a process runs on."""

from __future__ import annotations

from dataclasses import dataclass

from parameters import parameter


@dataclass(frozen=True)
class RunSettings:
    """Run."""

    spec: str | None = parameter(
        None, "YAML file of parameters (flag names without dashes); flags given besides override it"
    )
    agent: str = parameter(
        "iqn",
        "Learning algorithm, a name of agents/registry.py; evaluation also takes random and constant:<action>",
        shared=True,
    )
    rainbow_only: bool = parameter(False, "The original's name for --agent rainbow: C51 instead of IQN")
    game: str = parameter(
        "space_invaders",
        "ALE game, Gymnasium id (CartPole-v1), minatar:<game>, maze:<n> … or probe:<name>; or several, as pong,breakout: actors are divided among them",
        shared=True,
    )
    run: str = parameter("", "Name under which Redis keeps this run; empty = the game", pattern=r"^[^{}\s]*$")
    seed: int = parameter(
        123, "Seed of every generator, with the process's own number mixed in", ge=0, lt=2**31
    )
    T_max: int = parameter(
        50_000_000,
        "Length of the run, agent steps of all actors (times --action-repeat = 200M frames)",
        shared=True,
        ge=1,
    )
    model: str | None = parameter(
        None, "Start afresh from this snapshot's weights; in evaluation, the snapshot to play"
    )
    path_to_results: str = parameter(
        "results", "Folder of scores, plots, snapshots and logs; a stopped run resumes from here"
    )
    event_log_in: str | None = parameter(
        None,
        "Learner: fill the replay of a new run from this event log before learning (event_log/__main__.py)",
    )
    serial: bool = parameter(
        False, "One process alternates actor and learner: exactly repeatable, for study and tests"
    )


@dataclass(frozen=True)
class DeviceSettings:
    """Devices."""

    disable_cuda: bool = parameter(False, "Use the CPU even where there is a GPU")
    disable_cudnn: bool = parameter(False, "Use PyTorch's own GPU convolutions instead of cuDNN's")
    gpu_number: int = parameter(0, "GPU of this process; the CPU where there is none", ge=0)
    gpu_numbers: str | None = parameter(
        None, "start_learning.py: GPU of the learner, then of each actor, as 0,0,1,1", pattern=r"^\d+(,\d+)*$"
    )
    gpu_mem_fraction: float = parameter(
        1.0,
        "Largest share of the GPU's memory that this process may take (several learners on one GPU)",
        gt=0,
        le=1,
    )
    threads: int = parameter(
        0,
        "CPU threads of PyTorch in this process; 0 = one in an actor, with --serial and for a small network,"
        " else all cores",
        ge=0,
    )
    kernels: str = parameter(
        "compiled",
        "CPU loops: compiled, or plain: PyTorch's and NumPy's own operations in their place, slower",
        pattern="^(compiled|plain)$",
    )
