"""Parameters of progress lines, snapshots and evaluations."""

from __future__ import annotations

from dataclasses import dataclass

from parameters import parameter


@dataclass(frozen=True)
class ReportingSettings:
    """Reporting and evaluation."""

    log_interval: int = parameter(25_000, "Agent steps between two lines of progress", ge=1)
    evaluation_interval: int = parameter(
        500_000, "Agent steps between two snapshots, each with the plot drawn anew", ge=1
    )
    snapshot_seconds: float = parameter(300.0, "Seconds after which a snapshot is written besides", gt=0)
    evaluation_episodes: int = parameter(100, "Episodes of an evaluation (SABER: 100)", ge=1)
    evaluation_envs: int = parameter(
        16, "Environments that an evaluation steps together; does not change its result", ge=1
    )
    transfer: bool = parameter(
        False, "Evaluation may play another game than the snapshot's, with the same images and actions"
    )
    evaluation_size: int = parameter(500, "Accepted for old command lines; the original never used it")
    eval_noise: bool | None = parameter(
        None,
        "Evaluation acts with the agent's noise; default: the agent's own (noisy layers as the original: on; naf: off)",
    )
    render: bool = parameter(False, "Evaluation, or an actor, shows the play in a window, at real speed")
    record: str | None = parameter(None, "Evaluation films one episode into this .mp4 file")
