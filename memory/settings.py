"""Parameters of Redis and of the experience in it: replay and rollouts."""

from __future__ import annotations

from parameters.declare import Programs, Settings, parameter


def parsed_nodes(text: str) -> list[tuple[str, int]]:
    """Host and port of each server in `host:port,/path/to/socket`. Raises ValueError."""
    return [_parsed_node(word.strip()) for word in text.split(",")] if text else []


def _parsed_node(word: str) -> tuple[str, int]:
    host, _, port = word.rpartition(":")
    if word.startswith("/"):
        return word, 0
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{word!r} is no server: write host:port, or the path of a socket")
    return host.removeprefix("[").removesuffix("]"), int(port)  # of IPv6, [::1]:6379


class RedisSettings(Settings):
    """Redis."""

    programs = Programs.RUN | Programs.PAGE

    host_redis: str = parameter("localhost", "Host of the Redis server, or the path of its Unix socket")
    port_redis: int = parameter(6379, "TCP port of the Redis server", ge=1, le=65535)
    user_redis: str = parameter(
        "", "ACL user (redis_conf/redis_acl.conf); its password is in REDIS_PASSWORD or --redis-password-file"
    )
    redis_password_file: str = parameter(
        "", "File with the password; without it the environment variable REDIS_PASSWORD, if set"
    )
    redis_tls: bool = parameter(False, "Encrypt, and check the server's certificate")
    redis_ca: str = parameter("", "Certificate authority of the server; empty = those that the system trusts")
    redis_cert: str = parameter("", "This process's own certificate, where the server asks for one")
    redis_key: str = parameter("", "Private key that belongs to --redis-cert")
    redis_nodes: str = parameter(
        "",
        "Servers of a replay in shards, as host:port,/path/to/socket; the first replaces --host-redis",
    )
    redis_replicas: str = parameter(
        "",
        "Actor: replicas of the server, as host:port,/path/to/socket, from which actors by turns read weights",
        programs=Programs.RUN,
    )
    redis_cluster: bool = parameter(
        False, "The servers are nodes of one Redis Cluster; --redis-nodes names any of them"
    )
    redis_patience: float = parameter(
        60.0, "Seconds for which a process tries again when Redis is away before it gives up", gt=0
    )
    redis_conf: str = parameter(
        "redis_conf/redis_rainbow_6379.conf",
        "Configuration for the server that start_learning.py or launch_cluster.py starts if none answers",
        programs=Programs.TERMINAL | Programs.CLUSTER,
    )


class ReplaySettings(Settings):
    """Replay."""

    memory_capacity: int = parameter(1_000_000, "Transitions kept in Redis (Rainbow: 1M)", shared=True, ge=16)
    learn_start: int = parameter(
        80_000,
        "Agent steps of random play before learning (original: 80K; Rainbow's 80K are frames, 20K agent steps)",
        shared=True,
        ge=1,
    )
    replay_frequency: int = parameter(
        4,
        "Agent steps per update (DQN: 4). iqn, rainbow: actors hold their noise for as many vector steps, or for one with --noisy-epsilon-steps",
        shared=True,
        ge=1,
    )
    chunk_length: int = parameter(
        16, "Transitions per chunk sent to Redis (measured: docs/architecture.md)", shared=True, ge=1, le=4096
    )
    shards: int = parameter(
        1, "Parts of the replay, divided among --redis-nodes and actors by turns", shared=True, ge=1, le=256
    )
    save_replay: bool = parameter(
        False,
        "Learner: write the replay to disk too, at a stop, at the end and every --evaluation-interval. Without this flag, a server that start_learning.py started keeps the replay at a stop",
        programs=Programs.LEARNING,
    )
    gpu_replay: bool = parameter(
        False,
        "Learner: keep the replay's frames in its GPU's memory too, and gather batches there (docs/gpu.md)",
        programs=Programs.LEARNING,
    )
    batch_size: int = parameter(32, "Transitions per update (DQN: 32)", ge=1, programs=Programs.LEARNING)
    queue_size: int = parameter(5, "Batches that the sampler prepares ahead of the learner", ge=1, le=1000)
    priority_exponent: float | None = parameter(
        None,
        "Exponent alpha of priorities; default: the agent's own (iqn 0.2, rainbow 0.5, dqn 0: uniform)",
        shared=True,
        ge=0,
        le=1,
    )
    priority_epsilon: float = parameter(
        1e-6, "Added to losses before they become priorities (Schaul et al. 2016: small)", shared=True, gt=0
    )
    priority_max: float = parameter(
        0.0, "Upper bound of a loss as a priority, before the exponent; 0 = none", shared=True, ge=0
    )
    first_priorities: str = parameter(
        "acting",
        "Priority of a new transition: of its loss by the acting estimates (Horgan et al. 2018), or the largest such loss its actor has seen (as in Schaul et al. 2016)",
        shared=True,
        choices=("acting", "largest"),
    )
    priority_weight: float = parameter(
        0.4,
        "Importance-sampling exponent beta at the start, annealed to 1 at T-max (Schaul et al. 2016)",
        ge=0,
        le=1,
        programs=Programs.LEARNING,
    )
    weights_normalised_by: str = parameter(
        "batch",
        "Importance weights are divided by the largest of the batch, or of the whole memory, as in Schaul et al. 2016",
        choices=("batch", "memory"),
        programs=Programs.LEARNING,
    )
    multi_step: int = parameter(3, "Steps of the n-step return (Rainbow: 3)", shared=True, ge=1, le=1024)
    discount: float = parameter(
        0.99,
        "Discount gamma per agent step (DQN: 0.99); below 0 in games by turns, where the next value is the opponent's",
        shared=True,
        ge=-1,
        le=1,
    )


class RolloutSettings(Settings):
    """Rollouts (on-policy agents)."""

    rollout_length: int = parameter(
        128, "Vector steps of a rollout (Burda et al. 2018: 128)", shared=True, ge=1, le=65536
    )
    max_policy_lag: int = parameter(
        1,
        "Updates by which the weights that a rollout is played with may be old; 0 = --sequential",
        shared=True,
        ge=0,
        le=16,
    )
    sequential: bool = parameter(
        False, "Actors and learner take turns instead of overlapping: --max-policy-lag 0"
    )
    rollout_patience: float = parameter(
        60.0,
        "Seconds for which the learner waits for an actor's rollout before it learns without it",
        gt=0,
        programs=Programs.LEARNING,
    )
