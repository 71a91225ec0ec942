"""Parameters of a run as a whole, and of the machine that a process runs on."""

from __future__ import annotations

from parameters.declare import Programs, Settings, parameter


class RunSettings(Settings):
    """Run."""

    programs = Programs.ALL

    spec: str | None = parameter(
        None, "YAML file of parameters (flag names without dashes); flags given besides override it"
    )
    agent: str = parameter(
        "iqn",
        "Learning algorithm, a name of agents/registry.py or path/to/my_agent.py:MyAgent; evaluation also takes random and constant:<action>",
        shared=True,
    )
    changed_code: bool = parameter(
        False,
        "Go on with a run, snapshot or event log though the code of your own --game or --agent was another then",
    )
    rainbow_only: bool = parameter(False, "The original's name for --agent rainbow: C51 instead of IQN")
    game: str = parameter(
        "space_invaders",
        "ALE game, Gymnasium id (CartPole-v1), path/to/my_env.py:MyEnv, minatar:<game>, maze:<n> … or probe:<name>; or several, as pong,breakout: actors are divided among them",
        shared=True,
    )
    run: str = parameter(
        "",
        "Name under which Redis keeps this run; empty = the game",
        pattern=r"^[^{}\s]*$",
        programs=Programs.RUN,
    )
    seed: int = parameter(
        123, "Seed of every generator, with the process's own number mixed in", ge=0, lt=2**31
    )
    T_max: int = parameter(
        50_000_000,
        "Length of the run, agent steps of all actors (times --action-repeat = 200M frames)",
        shared=True,
        ge=1,
        programs=Programs.RUN,
    )
    model: str | None = parameter(
        None,
        "Start afresh from this snapshot's weights; in evaluation, the snapshot to play",
        programs=Programs.LEARNING | Programs.EVALUATION,
    )
    path_to_results: str = parameter(
        "results",
        "Folder of scores, plots, snapshots and logs; a stopped run resumes from here",
        programs=Programs.LEARNING | Programs.EVALUATION | Programs.PAGE,
    )
    event_log_in: str | None = parameter(
        None,
        "Learner: fill the replay of a new run from this event log before learning (event_log/__main__.py)",
        programs=Programs.LEARNING,
    )
    learners: int = parameter(
        1,
        "Processes that learn together, each from its part of every batch (docs/scale.md)",
        ge=1,
        le=64,
        programs=Programs.LEARNING,
    )
    serial: bool = parameter(
        False,
        "One process alternates actor and learner: exactly repeatable, for study and tests",
        programs=Programs.LEARNING,
    )


class DeviceSettings(Settings):
    """Devices."""

    programs = Programs.ALL

    disable_cuda: bool = parameter(False, "Use the CPU even where there is a GPU")
    disable_cudnn: bool = parameter(False, "Use PyTorch's own GPU convolutions instead of cuDNN's")
    gpu_number: int = parameter(
        0,
        "GPU of this process; the CPU where there is none",
        ge=0,
        programs=Programs.LEARNER | Programs.ACTOR | Programs.EVALUATION,
    )
    gpu_numbers: str | None = parameter(
        None,
        "start_learning.py: GPU of the learner, then of each actor, as 0,0,1,1",
        pattern=r"^\d+(,\d+)*$",
        programs=Programs.TERMINAL,
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
        choices=("compiled", "plain"),
    )
