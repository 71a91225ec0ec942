"""Parameters of the actors."""

from __future__ import annotations

from pathlib import Path

from parameters.declare import Programs, Settings, parameter


def event_log_path(out: str, actor: int, actors: int) -> Path:
    """Where an actor writes its event log: one process writes one file, so that several number theirs."""
    path = Path(out)
    return path.with_stem(f"{path.stem}_{actor}") if actors > 1 else path


class ActorSettings(Settings):
    """Actors."""

    nb_actor: int = parameter(1, "Number of actors expected", ge=1, le=4096)
    id_actor: int = parameter(
        0,
        "Number of this actor, from 0; each at most once at a time; -1: the lowest that no living actor of the run has",
        ge=-1,
        programs=Programs.LEARNER | Programs.ACTOR,
    )
    eval: bool = parameter(
        False, "Actor: act without noise, and have its scores plotted apart from those of training"
    )
    no_push: bool = parameter(False, "Actor: keep its experience out of the replay")
    post_episode_sleep: float = parameter(0.0, "Actor: pause after each episode, seconds", ge=0)
    env_patience: float = parameter(
        30.0,
        "Seconds after which an environment that does not answer is named, with step, episode and line of code (30: more than a step of Malmo, the slowest here, takes)",
        gt=0,
    )
    ckpt_dir: str | None = parameter(
        None,
        "Actor: take weights from the newest snapshot in this folder, read again each episode, not from Redis",
    )
    event_log_out: str | None = parameter(
        None, "Actor: append its episodes to this event log (event_log/__main__.py)"
    )
    seat_runs: str = parameter(
        "",
        "Games of moves at the same time, and Unity: a run for each seat or brain, as left,right, whose learners learn independently; the actor plays all",
        programs=Programs.ACTOR,
    )
    opponents: str = parameter(
        "self",
        "Opponent in games of two seats: self = the present network; past = in --opponent-share of the games a past network, all equally likely; pfsp = the same, stronger opponents more often",
        shared=True,
        choices=("self", "past", "pfsp"),
    )
    opponent_share: float = parameter(
        0.5, "Share of the games that are played against a past self", shared=True, ge=0, le=1
    )
    pool_size: int = parameter(
        20, "Past selves that are kept, in Redis and in the results folder", ge=2, le=1000
    )
    pool_every: int = parameter(
        50_000, "Learner's clock (agent steps) between two additions to the pool", ge=1
    )
    synchronize_actors_with_learner: bool = parameter(
        True, "One update per --replay-frequency steps; actors and learner wait for each other", shared=True
    )
    end_by: str = parameter(
        "",
        "Which clock ends the run at --T-max: learner = the learner's, actors = the actors'; empty = the later of the two",
        shared=True,
        choices=("learner", "actors", ""),
    )
    length_actor_buffer: int = parameter(
        1000,
        "Upper bound on the transitions an actor holds back before it pushes: shortens --chunk-length where needed",
        shared=True,
        ge=1,
    )
    weight_synchro_frequency: int = parameter(
        400,
        "Agent steps between two publications of weights (Ape-X and original: 400); without --serial at most 25 MB/s",
        shared=True,
        ge=1,
    )
    weights_dtype: str = parameter(
        "float32",
        "Type of the weights that actors get: bfloat16 halves their bytes, and actors act with the rounded ones",
        programs=Programs.LEARNING,
        choices=("float32", "bfloat16"),
    )
    share_weights: bool = parameter(
        False,
        "Actor: the run's actors on one machine fetch each version of the weights once, through /dev/shm",
    )
