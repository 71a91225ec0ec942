"""What a server holds: `python -m memory.runs list`, `show RUN`, `delete RUN`; its users: `acl RUN`."""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import name_missing_packages

    name_missing_packages()

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import NamedTuple

import redis

from memory.runs.access import acl_of
from memory.runs.counters import Counters, CountersError, read_counters
from memory.runs.keys import Keys, keys_of_shard
from memory.runs.reports import read_living, read_statuses
from memory.runs.run import Place, read_living_run, read_settings, run_names
from memory.server.connection import Client, RedisConfig, RedisRefused, advice, make_client, refusal
from memory.server.replies import UNREACHABLE, refusals_as_outages
from memory.settings import parsed_nodes
from supervision.process import INTERRUPTED, USER_ERROR, agrees


class RunsError(ValueError):
    """What was asked for cannot be done; the message is one sentence."""


class Summary(NamedTuple):
    """One run on a server."""

    run: str
    megabytes: float  # as the servers estimate it
    missing: str  # what is not in them: shards that were not found
    counters: Counters
    learner_lives: bool
    actors: int  # that are alive
    spoke_s: float | None  # seconds since any of its processes said something

    def __str__(self) -> str:
        spoke = "never" if self.spoke_s is None else f"{self.spoke_s:,.0f} s ago"
        learner = "learner alive" if self.learner_lives else "no learner"
        return (
            f"{self.run}: {self.megabytes:,.2f} MB{self.missing}, {self.counters.played:,} steps, {learner},"
            f" {self.actors} actors alive, last heard {spoke}"
        )


def summary(client: Client, run: str, others: Sequence[Place]) -> Summary:
    """`others`: as of `delete`. Raises RunsError where there is no such run."""
    keys = Keys(run)
    if not client.exists(keys.counters):
        known = ", ".join(run_names(client)) or "none"
        raise RunsError(f"The server holds no run {run!r}; it holds: {known}.")
    there = [Place(client, keys)]
    with suppress(redis.exceptions.NoPermissionError):  # a user of this run alone may not look at its others
        there += filter(_is_there, others)
    sizes = [place.client.memory_usage(key) or 0 for place in there for key in place.keys.experience]
    spoken = [float(said["time"] or 0) for said in read_statuses(client, keys).values()]
    return Summary(
        run,
        sum(sizes) / 1e6,
        f" in {len(there)} of {1 + len(others)} shards" if len(there) <= len(others) else "",
        read_counters(client, keys),
        read_living_run(client, keys) is not None,
        len(read_living(client, keys)),
        max(time.time() - max(spoken), 0.0) if spoken else None,
    )


def show(client: Client, run: str, others: Sequence[Place]) -> str:
    """Everything about one run; `others`: as of `delete`."""
    found, info = summary(client, run, others), read_settings(client, Keys(run))
    settings, status = {} if info is None else info.settings, read_statuses(client, Keys(run))
    parts = {"counters": found.counters._asdict(), "settings": settings, "status": status}
    return "\n".join([str(found), *(f"{name}: {json.dumps(part, indent=2)}" for name, part in parts.items())])


def delete(client: Client, run: str, agrees: Callable[[str], bool], others: Sequence[Place]) -> str:
    """Remove a run that nobody uses; raises RunsError where somebody does. Others are left alone.

    `others`: where its shards but 0 should lie; those that do not lie there stay.
    """
    found, keys = summary(client, run, others), Keys(run)
    if found.learner_lives or found.actors:
        raise RunsError(f"{found}: stop its processes first.")
    there = [place for place in others if _is_there(place)]
    away = ", ".join(str(place.keys.shard) for place in others if place not in there)
    stays = f" Not found, and left: shards {away}; give all of the run's --redis-nodes." if away else ""
    if not agrees(f"{found}.{stays} Remove it?"):
        return f"Run {run!r} was left as it is."
    admitted = (name.removeprefix(b"granted:") for name in client.hkeys(keys.counters))
    actors = [int(name) for name in admitted if name.isdigit()]  # whose leases elsewhere have no end
    for place in there:
        place.client.unlink(*place.keys.experience, *map(place.keys.actor_lease, actors))
    client.unlink(*keys.experience)
    return f"Run {run!r} was removed.{stays}"


def _is_there(place: Place) -> bool:
    with suppress(*UNREACHABLE), refusals_as_outages():
        return bool(place.client.exists(place.keys.counters))
    return False


def other_shards(client: Client, run: str, config: RedisConfig) -> list[Place]:
    """Where the shards of a run but 0 lie: by turns at --redis-nodes, or where its cluster has them."""
    info = read_settings(client, Keys(run))
    shards = None if info is None else info.settings.get("shards")
    if not isinstance(shards, int):
        return []
    return [
        Place(make_client(config.of_shard(shard)), keys_of_shard(run, shard, shards, config.redis_cluster))
        for shard in range(1, shards)
    ]


def acl(client: Client, run: str) -> str:
    """Users for this server who may do with the run what their roles need. Raises RunsError."""
    try:
        version = str(client.info("server")["redis_version"])
        return acl_of(run, redis_7=int(version.partition(".")[0]) >= 7)
    except ValueError as error:
        raise RunsError(str(error)) from error


def _port(word: str) -> int:
    if not word.isdecimal() or not 0 < int(word) < 65536:
        raise argparse.ArgumentTypeError(f"{word!r} is no port: it must lie between 1 and 65535")
    return int(word)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memory.runs", description="The runs on a Redis server.")
    parser.add_argument("command", choices=("list", "show", "delete", "acl"))
    parser.add_argument("run", nargs="?", help="name of the run: of show, delete and acl")
    parser.add_argument("--host-redis", default="localhost", help="host, or path of a Unix socket")
    parser.add_argument("--port-redis", type=_port, default=6379)
    for name in ("user-redis", "redis-password-file", "redis-ca", "redis-cert", "redis-key", "redis-nodes"):
        parser.add_argument(f"--{name}", default="", help="as of launch_learner.py")
    for name in ("redis-tls", "redis-cluster"):
        parser.add_argument(f"--{name}", action="store_true", help="as of launch_learner.py")
    parser.add_argument("--yes", action="store_true", help="delete without asking")
    return parser


def _server(args: argparse.Namespace) -> RedisConfig:
    """The first of --redis-nodes, which has shard 0, replaces --host-redis. Raises RunsError."""
    config = RedisConfig(**{field.name: getattr(args, field.name) for field in fields(RedisConfig)})
    try:
        nodes = parsed_nodes(args.redis_nodes)
    except ValueError as error:
        raise RunsError(f"--redis-nodes {args.redis_nodes}: {error}.") from error
    return replace(config, host_redis=nodes[0][0], port_redis=nodes[0][1]) if nodes else config


def answer(argv: Sequence[str]) -> str:
    """What is printed. Raises RunsError."""
    parser = _parser()
    args = parser.parse_args(argv)
    if (args.run is None) != (args.command == "list"):
        parser.error("show, delete and acl need the name of a run, list takes none")
    config = _server(args)
    client = make_client(config)
    try:
        with refusals_as_outages():
            client.ping()
        if config.redis_cluster and args.run:
            client.exists(Keys(args.run).counters)  # leads the client to the run's node
        if args.command == "list":
            runs = {run: other_shards(client, run, config) for run in run_names(client)}
            found = [str(summary(client, run, others)) for run, others in runs.items()]
            return "\n".join(found) or "The server holds no run."
        if args.command == "acl":
            return acl(client, args.run)
        others = other_shards(client, args.run, config)
        if args.command == "show":
            return show(client, args.run, others)
        return delete(client, args.run, (lambda _: True) if args.yes else agrees, others)
    except (*UNREACHABLE, redis.exceptions.InvalidResponse) as error:
        raise refusal(config, error) or RunsError(advice(config, error)) from error
    except redis.exceptions.NoPermissionError as error:
        raise RunsError(f"The server does not allow this user to do that: {error}.") from error
    except (redis.exceptions.RedisError, CountersError) as error:
        raise RunsError(f"Data of a run in Redis is damaged, or another program wrote it: {error}") from error
    finally:
        client.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code."""
    try:
        print(answer(sys.argv[1:] if argv is None else argv))
    except (RunsError, RedisRefused) as error:
        print(f"error: {error}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print("\nInterrupted; nothing was changed.", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
