"""The servers of a tormented run: one for each shard, the first behind a proxy; or a Redis Cluster."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, suppress
from pathlib import Path

from memory.runs.keys import Keys, tag_suffix
from memory.runs.run import Place
from memory.server.connection import Client, RedisConfig, make_client
from memory.server.replies import UNREACHABLE
from tests.cluster_nodes import redis_cluster
from tests.faults.processes import Process, free_port, wait_until
from tests.faults.proxy import Proxy

GAME = "probe:catch"
PERSISTENCE = {
    "none": ["--save", "", "--appendonly", "no"],
    "rdb": ["--save", "1 1", "--appendonly", "no", "--stop-writes-on-bgsave-error", "no"],
    "everysec": ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"],
    "always": ["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
}
"""What survives a killed server: as the files of redis_conf/ say it; dumps come every second here."""
REPLICAS = "replicas"
"""A Redis Cluster: what survives a killed master is what its replica had."""


class Server:
    """One that is on no cluster."""

    def __init__(self, folder: Path, mode: str, env: dict[str, str]) -> None:
        program = shutil.which("redis-server")
        assert program, "redis-server is not on the PATH"
        folder.mkdir(exist_ok=True)
        self.port = free_port()
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)]
        self.process = Process([program, *place, *PERSISTENCE[mode]], folder / "redis.log", env)
        self.client: Client = make_client(RedisConfig("127.0.0.1", self.port))

    def start(self) -> None:
        """Once more, with what it has saved."""
        self.process.start()
        self.await_answer()

    def await_answer(self) -> None:
        """Until it answers."""

        def answers() -> bool:
            with suppress(*UNREACHABLE):
                return bool(self.client.ping())
            return False

        wait_until(answers, 60, "Redis answers")


class PlainServers:
    """A server for each shard, of which the first is reached through a proxy."""

    def __init__(self, folder: Path, mode: str, shards: int, env: dict[str, str]) -> None:
        self.of_shards = [Server(folder / f"redis_{shard}", mode, env) for shard in range(shards)]
        for server in self.of_shards:
            server.await_answer()
        self.proxy = Proxy(self.first.port)
        ports = [self.proxy.port, *(server.port for server in self.others)]
        self.words = ["--redis-nodes", ",".join(f"127.0.0.1:{port}" for port in ports)]
        self.places = [Place(server.client, Keys(GAME, n)) for n, server in enumerate(self.of_shards)]

    @property
    def first(self) -> Server:
        """That of settings, weights, episodes and leases."""
        return self.of_shards[0]

    @property
    def others(self) -> list[Server]:
        """Those of the shards after the first."""
        return self.of_shards[1:]

    def end(self) -> None:
        """All of them."""
        for server in self.of_shards:
            server.process.kill()
        self.proxy.close()


class ClusterServers:
    """Three masters of a Redis Cluster, with a replica each."""

    def __init__(self, folder: Path, shards: int) -> None:
        self._stack = ExitStack()
        self.cluster = self._stack.enter_context(redis_cluster(folder))
        nodes = ",".join(f"127.0.0.1:{port}" for port in self.cluster.ports)
        self.words = ["--redis-cluster", "--redis-nodes", nodes]
        config = RedisConfig("127.0.0.1", self.cluster.ports[0], redis_cluster=True, redis_nodes=nodes)
        tags = [tag_suffix(GAME, shard, shards) for shard in range(shards)]
        self.places = [Place(make_client(config), Keys(GAME, shard, tag)) for shard, tag in enumerate(tags)]

    def end(self) -> None:
        """All of them."""
        self._stack.close()
