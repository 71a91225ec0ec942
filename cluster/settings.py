"""Parameters of a run on a cluster."""

from __future__ import annotations

from parameters.declare import Programs, Settings, parameter


class ClusterSettings(Settings):
    """Cluster (launch_cluster.py)."""

    programs = Programs.CLUSTER

    ray_address: str = parameter(
        "",
        "Ray cluster, as 10.0.0.1:6379 or auto; empty = a Ray on this machine alone, for the length of the run",
    )
    placement: str = parameter(
        "spread",
        "spread: actors evenly over the machines; packed: fill a machine to half of its resources, then the next one (Ray's default)",
        choices=("spread", "packed"),
    )
    learner_cpus: float = parameter(1.0, "Processors that Ray sets aside for the learner", gt=0)
    learner_gpus: float | None = parameter(
        None,
        "GPUs that Ray sets aside for the learner; default: 1 for each of --learners where its machine has any",
        ge=0,
    )
    learner_anywhere: bool = parameter(
        False,
        "Let Ray place the learner on any machine, and move it: all must see --path-to-results; else it stays on this one",
    )
    actor_cpus: float = parameter(1.0, "Processors that Ray sets aside for an actor", gt=0)
    actor_gpus: float = parameter(0.0, "GPUs that Ray sets aside for an actor, which sees none without", ge=0)
    max_restarts: int = parameter(
        20, "How often Ray itself starts a process again whose machine is gone; -1 = always", ge=-1
    )
    detach: bool = parameter(False, "Leave the run to the cluster, and end this program")
    status: bool = parameter(False, "Say which processes of the run are where, and end")
    stop: bool = parameter(False, "Have the run save and end, wherever it was started")
    add_actors: int = parameter(
        0, "So many actors join a run, until Ctrl-C, --stop or its end", ge=0, le=4096
    )
    remove_actors: int = parameter(0, "So many actors leave a run, the highest numbers first", ge=0, le=4096)
