"""What a Redis Cluster costs beside plain servers: the same actors and draws through three of either."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from socket import socket

from benchmarks.harness import CONF_FILE, Effort, started
from benchmarks.report import Figure
from benchmarks.scale.shards import Division, figures_of, loads_of, packed, ratio
from memory.server.connection import RedisConfig, make_client

MASTERS = 3
"""The fewest masters of which redis-cli makes a cluster."""
UP_WITHIN_S = 40.0
HOST = "127.0.0.1"


def measure(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """Processor time per transition of both, over TCP on this machine; their files lie beside `redis`'."""
    folder, packets = Path(redis.host_redis).parent, packed(seed)
    with ExitStack() as stack:
        kinds = {"nodes": plain_nodes(folder), "cluster": cluster_nodes(folder)}
        started = {name: stack.enter_context(nodes) for name, nodes in kinds.items()}
        loads = loads_of({name: Division(nodes, packets, seed) for name, nodes in started.items()}, effort)
    yield from figures_of(loads)
    yield Figure("scale.cluster_ratio", ratio(loads["cluster"], loads["nodes"]), {})


@contextmanager
def plain_nodes(folder: Path) -> Iterator[list[RedisConfig]]:
    """MASTERS servers that know nothing of each other."""
    ports = _free_ports(MASTERS)
    with ExitStack() as stack:
        yield [stack.enter_context(_serving(folder, port, "")) for port in ports]


@contextmanager
def cluster_nodes(folder: Path) -> Iterator[list[RedisConfig]]:
    """MASTERS servers that have a third of a Redis Cluster's slots each, and no replicas."""
    ports, between = _free_ports(MASTERS), _free_ports(MASTERS)
    with ExitStack() as stack:
        for port, bus in zip(ports, between, strict=True):
            own = f"cluster-port {bus}\ncluster-config-file nodes-{port}.conf"
            stack.enter_context(_serving(folder, port, f"cluster-enabled yes\n{own}\ndir {folder}"))
        addresses = [f"{HOST}:{port}" for port in ports]
        command = ["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=UP_WITHIN_S)
        _wait_until_up(ports)
        yield [RedisConfig(HOST, port, redis_cluster=True, redis_nodes=",".join(addresses)) for port in ports]


def _serving(folder: Path, port: int, settings: str) -> AbstractContextManager[RedisConfig]:
    """A server with these lines in its configuration."""
    conf_file = folder / f"{port}.conf"
    conf_file.write_text(f"include {CONF_FILE}\n{settings}\n")
    return started(RedisConfig(HOST, port), conf_file, folder / f"{port}.log")


def _wait_until_up(ports: Sequence[int]) -> None:
    """Until every node knows who has each slot. Raises TimeoutError."""
    deadline = time.monotonic() + UP_WITHIN_S
    for client in [make_client(RedisConfig(HOST, port)) for port in ports]:
        while client.cluster("INFO")["cluster_state"] != "ok":
            if time.monotonic() > deadline:
                raise TimeoutError(f"No cluster came up within {UP_WITHIN_S:.0f} s.")
            time.sleep(0.05)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        taken = [held.enter_context(socket()) for _ in range(count)]
        for each in taken:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in taken]
