"""A client for a Redis Cluster, which goes to the node that serves its keys, and along when they move.

The keys that one client uses share a hash tag, so that they lie in one slot, on one node. A node that does
not serve a slot says which one does (MOVED): the client's next connection leads there. Nothing was done then,
so a `Patience` repeats it, as after an outage. It waits as well while a slot is on its way (ASK, TRYAGAIN),
and while no replica is elected yet (CLUSTERDOWN, or silence).

redis-py's own cluster client sends again by itself, which could count a push twice.
"""

# redis-py does not annotate its connections:
# mypy: disallow-untyped-calls=False

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import redis
from redis.exceptions import AskError, MovedError, ResponseError

from memory.server.replies import UNREACHABLE, Refusing

HOPS = 5
"""Most nodes that one command is sent to: a node that has not heard of the last move names the one before it.
"""


class NodeAddress(NamedTuple):
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Moved(Refusing):
    """Another node serves these keys; nothing was done."""


class NoCluster(ResponseError):
    """A server that is none of a Redis Cluster's nodes; the message is a sentence without its full stop."""


class Route:
    """Which node the connections of a client lead to, and which other nodes there are."""

    def __init__(self, nodes: Sequence[NodeAddress]) -> None:
        """`nodes`: any of the cluster's; the first is tried first."""
        self.address = nodes[0]
        self._nodes = list(dict.fromkeys(nodes))

    def learn(self, nodes: Sequence[NodeAddress]) -> None:
        """Remember these too."""
        self._nodes = list(dict.fromkeys([*self._nodes, *nodes]))

    def lead_to(self, node: NodeAddress) -> None:
        """It serves the client's keys."""
        self.learn([node])
        self.address = node

    def lead_past(self, away: NodeAddress) -> None:
        """`away` does not answer: any other node knows, or soon will, who serves its slots."""
        if away == self.address:
            after = self._nodes.index(away) + 1
            self.address = self._nodes[after % len(self._nodes)]


class _Routed(redis.Connection):
    """A connection to the node that its route leads to when it connects."""

    def __init__(self, *, route: Route, **options: Any) -> None:
        super().__init__(**options)
        self._route = route

    def connect_check_health(self, *arguments: Any, **options: Any) -> None:
        if not self.is_connected:
            self.host, self.port = self._route.address
        try:
            super().connect_check_health(*arguments, **options)
        except UNREACHABLE:
            self._route.lead_past(NodeAddress(self.host, self.port))
            raise

    def on_connect(self) -> None:
        super().on_connect()
        try:
            self.send_command("CLUSTER", "SLOTS")
            self._route.learn(_nodes_in(self.read_response(), self.host))
        except ResponseError as error:  # a user who may not ask knows the nodes that were named
            if "cluster support disabled" in str(error):
                said = f"{self.host}:{self.port} is no node of a Redis Cluster: leave --redis-cluster out"
                raise NoCluster(said) from error

    def read_response(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().read_response(*arguments, **options)
        except MovedError as moved:
            node = NodeAddress(moved.host or self.host, int(moved.port))
            self._route.lead_to(node)
            raise Moved(f"its cluster has these keys at {node}") from moved
        except AskError as asked:
            raise Refusing("its cluster is moving these keys") from asked


class _RoutedTls(_Routed, redis.SSLConnection):
    """The same over TLS."""


def _nodes_in(slots: Sequence[Any], asked: str) -> list[NodeAddress]:
    """All nodes in an answer to CLUSTER SLOTS of a node at the host `asked`."""
    nodes = [node for _, _, *of_range in slots for node in of_range]
    return [NodeAddress((host or asked.encode()).decode(), port) for host, port, *_ in nodes]


class _RoutedClient(redis.Redis):
    """Sends a single command, which a node has refused to take, to the node that it named."""

    def execute_command(self, *arguments: Any, **options: Any) -> Any:
        for _ in range(HOPS - 1):
            with contextlib.suppress(Moved):
                return super().execute_command(*arguments, **options)
        return super().execute_command(*arguments, **options)


def cluster_client(nodes: Sequence[tuple[str, int]], options: Mapping[str, Any]) -> redis.Redis:
    """A client for keys of one hash tag.

    Args:
        nodes: Host and port of any nodes of the cluster.
        options: What a `redis.Redis` is made with; a connection of its kind is made with the same.
    """
    of_connections = dict(options)
    kind = _RoutedTls if of_connections.pop("ssl", False) else _Routed
    route = Route([NodeAddress(*node) for node in nodes])
    return _RoutedClient(
        connection_pool=redis.ConnectionPool(connection_class=kind, route=route, **of_connections)
    )
