"""Parameters of progress lines, snapshots and evaluations."""

from __future__ import annotations

from parameters.declare import Programs, Settings, parameter


class ReportingSettings(Settings):
    """Reporting and evaluation."""

    programs = Programs.EVALUATION

    log_interval: int = parameter(
        25_000, "Agent steps between two lines of progress", ge=1, programs=Programs.RUN
    )
    evaluation_interval: int = parameter(
        500_000,
        "Agent steps between two snapshots, each with the plot drawn anew",
        ge=1,
        programs=Programs.LEARNING,
    )
    snapshot_seconds: float = parameter(
        300.0, "Longest time between two snapshots, seconds", gt=0, programs=Programs.LEARNING
    )
    evaluation_episodes: int = parameter(100, "Episodes of an evaluation (SABER: 100)", ge=1)
    evaluation_envs: int = parameter(
        16, "Environments that an evaluation steps together; does not change its result", ge=1
    )
    track: str = parameter(
        "",
        "Send scalars, settings and films to wandb, mlflow or trackio too (each an extra of the set-up)",
        choices=("", "wandb", "mlflow", "trackio"),
        programs=Programs.LEARNING | Programs.EVALUATION,
    )
    kept: str = parameter(
        "", "Evaluation plays a snapshot that ships, by its name in results/kept, in place of --model"
    )
    against: str = parameter(
        "",
        "Opponent in games of two seats: random, a snapshot's file, or pool (past selves beside --model); seats are swapped; default in games by turns: random",
    )
    opening_plies: int = parameter(
        4,
        "Random legal moves that begin each game by turns (two players without noise repeat one game)",
        ge=0,
    )
    ratings: bool = parameter(
        False,
        "With --against pool: past selves play each other too, --evaluation-episodes games a pair; rates all on one scale of Elo",
    )
    transfer: bool = parameter(
        False, "Evaluation may play another game than the snapshot's, with the same images and actions"
    )
    evaluation_size: int = parameter(
        500, "Accepted for old command lines; the original never used it", programs=Programs.ALL
    )
    eval_noise: bool | None = parameter(
        None,
        "Evaluation acts with the agent's noise; default: the value of the snapshot's run, else the agent's own (noisy layers as the original: on; naf, and any with --noisy-epsilon-steps: off)",
        shared=True,
    )
    evaluation_epsilon: float = parameter(
        0.0,
        "Share of an evaluation's actions that are random (Atari 100k: 0.001); default: the value of the snapshot's run",
        shared=True,
        ge=0,
        le=1,
    )
    render: bool = parameter(
        False, "Evaluation, or an actor, shows the play in a window, at real speed", programs=Programs.ALL
    )
    record: str | None = parameter(
        None,
        "Evaluation films one episode into this .mp4 file, with --against the match's first game; as .png: a graph of the numbers it shows",
    )
