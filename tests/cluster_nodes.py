"""A real Redis Cluster on this machine: three masters with a replica each."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from socket import socket

import redis
from redis.crc import key_slot

from memory.server.connection import Client

MASTERS = 3
NODE_TIMEOUT_MS = 2000
"""After so long without an answer a node counts as away."""
UP_WITHIN_S = 40.0


class RedisCluster:
    """Its nodes, by their ports."""

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self.ports, self._folder = ports, folder
        self._processes = {port: self._start(port) for port in ports}
        self._clients: dict[int, Client] = {port: redis.Redis(port=port, protocol=2) for port in ports}

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        program = shutil.which("redis-server")
        assert program, "redis-server is not on the PATH"
        own = self._folder / str(port)
        own.mkdir(exist_ok=True)
        words = f"--port {port} --bind 127.0.0.1 --dir {own} --appendonly no --cluster-enabled yes"
        words += f" --cluster-node-timeout {NODE_TIMEOUT_MS} --cluster-port {port + 1}"
        words += " --repl-diskless-sync-delay 0 --save"
        return subprocess.Popen([program, *words.split(), ""], stdout=subprocess.DEVNULL)

    def create(self) -> None:
        """Join them, and wait until every node knows."""
        self._until(lambda: all(client.ping() for client in self._clients.values()))
        addresses = [f"127.0.0.1:{port}" for port in self.ports]
        command = ["redis-cli", "--cluster", "create", *addresses, "--cluster-replicas", "1", "--cluster-yes"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=UP_WITHIN_S)
        self._await_replicas()

    def _await_replicas(self) -> None:
        self._until(lambda: len(self._replicas()) == len(self.ports) - MASTERS)
        self._until(lambda: all(self._is_up(client) for client in self._clients.values()))

    @staticmethod
    def _is_up(client: Client) -> bool:
        return bool(client.cluster("INFO")["cluster_state"] == "ok")

    def _replicas(self) -> list[int]:
        """Those that hold what their master holds."""
        roles = {port: client.role() for port, client in self._clients.items()}
        return [port for port, role in roles.items() if role[0] == b"slave" and role[3] == b"connected"]

    @staticmethod
    def _until(true: Callable[[], object]) -> None:
        deadline = time.monotonic() + UP_WITHIN_S
        while True:
            with suppress(redis.exceptions.RedisError):
                if true():
                    return
            assert time.monotonic() < deadline, "the cluster is not what it should be"
            time.sleep(0.05)

    def master_of(self, key: str) -> int:
        """Port of the node that serves a key, as most others see it."""
        for port, client in self._clients.items():
            with suppress(redis.exceptions.RedisError):
                for first, last, (_, served_by, *_), *_ in client.cluster("SLOTS"):
                    if first <= key_slot(key.encode()) <= last and port != served_by:
                        return int(served_by)
        raise AssertionError(f"no node serves {key}")

    def kill(self, port: int) -> None:
        """As `kill -9`: its replica takes its place."""
        self._processes[port].kill()
        self._processes[port].wait(10)

    def start_again(self, port: int) -> None:
        """A killed node, which comes back as a replica of the one that took its place."""
        self._processes[port] = self._start(port)
        self._await_replicas()

    def move_slot_of(self, key: str) -> int:
        """Hand a key's slot to another master, key by key; that one's port."""
        slot, source = key_slot(key.encode()), self.master_of(key)
        away = {port for port, process in self._processes.items() if process.poll() is not None}
        masters = [p for p in self.ports if p not in away and self._clients[p].role()[0] == b"master"]
        target = next(port for port in masters if port != source)
        names = {p: self._clients[p].cluster("MYID").decode() for p in (source, target)}
        self._clients[target].cluster("SETSLOT", slot, "IMPORTING", names[source])
        self._clients[source].cluster("SETSLOT", slot, "MIGRATING", names[target])
        while keys := self._clients[source].cluster("GETKEYSINSLOT", slot, 1):
            self._clients[source].execute_command("MIGRATE", "127.0.0.1", target, keys[0], 0, 5000)
            time.sleep(0.05)  # so that others see it half done
        for port in (target, source, *masters):
            self._clients[port].cluster("SETSLOT", slot, "NODE", names[target])
        return target

    def end(self) -> None:
        """All nodes."""
        for process in self._processes.values():
            process.kill()
            process.wait(10)


def _free_ports(count: int) -> list[int]:
    """So many, each with a free one after it: over that one nodes talk to each other."""
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            one, after = held.enter_context(socket()), held.enter_context(socket())
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            with suppress(OSError):
                after.bind(("127.0.0.1", port + 1))
                ports.append(port)
    return ports


@contextmanager
def redis_cluster(folder: Path) -> Iterator[RedisCluster]:
    """One that ends with the block."""
    cluster = RedisCluster(folder, _free_ports(2 * MASTERS))
    try:
        cluster.create()
        yield cluster
    finally:
        cluster.end()
