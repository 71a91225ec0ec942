"""Where Ray may put what, and whether there is room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from args import Args
from memory.server.connection import is_loopback
from memory.settings import parsed_nodes
from parameters.declare import UserError

STRATEGIES = {"spread": "SPREAD", "packed": "DEFAULT"}
"""--placement -> Ray's name of the scheduling strategy:
https://docs.ray.io/en/latest/ray-core/scheduling/index.html
"""


def here() -> str:
    """Ray's name of the machine on which this program runs."""
    return str(ray.get_runtime_context().get_node_id())


def on_this_machine() -> NodeAffinitySchedulingStrategy:
    """A scheduling strategy."""
    return NodeAffinitySchedulingStrategy(here(), soft=False)


def options_for(role: str, args: Args) -> dict[str, Any]:
    """Options of the Ray actor that hosts that process."""
    place: Any = STRATEGIES[args.placement]
    room = {"num_cpus": args.actor_cpus, "num_gpus": args.actor_gpus}
    if role == "learner":
        place = STRATEGIES["packed"] if args.learner_anywhere else on_this_machine()
        room = {"num_cpus": args.learner_cpus, "num_gpus": _learner_gpus(args)}
    return {**room, "max_restarts": args.max_restarts, "scheduling_strategy": place}


def check_room(args: Args) -> str:
    """A sentence where some processes will have to wait for room, else "".

    Raises UserError where no machine could ever hold the learner, or an actor.
    """
    learners = list(_machines(anywhere=args.learner_anywhere))
    _check(learners, "learner", args.learner_cpus, _learner_gpus(args))
    _check(list(_machines()), "actor", args.actor_cpus, args.actor_gpus)
    asked = args.learner_cpus + args.nb_actor * args.actor_cpus
    there = sum(machine.get("CPU", 0.0) for machine in _machines())
    if asked <= there:
        return ""
    return (
        f"Ray has {there:g} processors and the run asks for {asked:g}: what finds no room waits for some."
        " --actor-cpus 0.5 puts two actors on each."
    )


def check_reachable(args: Args) -> None:
    """Raises UserError where a server listens on this machine alone and actors play on others."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    others = {node["NodeManagerAddress"] for node in nodes} - {
        node["NodeManagerAddress"] for node in nodes if node["NodeID"] == here()
    }
    named = {"--redis-nodes": args.redis_nodes, "--redis-replicas": args.redis_replicas}
    servers = [(flag, host) for flag, text in named.items() for host, _ in parsed_nodes(text)]
    for flag, host in servers if args.redis_nodes else [("--host-redis", args.host_redis), *servers]:
        if others and is_loopback(host):
            raise UserError(
                f"No other machine of the cluster ({', '.join(sorted(others))}) reaches a Redis server at"
                f" {host}: start one that they reach, with a password, and give {flag}"
                " (docs/several_machines.md)."
            )


def _machines(anywhere: bool = True) -> Iterator[dict[str, float]]:
    """Resources of those that live; else of this one alone."""
    return (
        node["Resources"] for node in ray.nodes() if node["Alive"] and (anywhere or node["NodeID"] == here())
    )


def _learner_gpus(args: Args) -> float:
    if args.learner_gpus is not None:
        return args.learner_gpus
    machines = _machines(anywhere=args.learner_anywhere)
    has_gpus = not args.disable_cuda and any(machine.get("GPU", 0) >= 1 for machine in machines)
    return float(args.learners if has_gpus else 0)


def _check(machines: list[dict[str, float]], role: str, cpus: float, gpus: float) -> None:
    if any(each.get("CPU", 0) >= cpus and each.get("GPU", 0) >= gpus for each in machines):
        return
    room = " / ".join(f"{each.get('CPU', 0):g} and {each.get('GPU', 0):g}" for each in machines)
    raise UserError(
        f"--{role}-cpus {cpus:g} with --{role}-gpus {gpus:g} is more than any machine has that may hold it"
        f" (processors and GPUs: {room})."
    )
