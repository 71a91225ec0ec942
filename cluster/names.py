"""What Ray calls the parts of a run. An actor's or the learner's host has its role for a name."""

from __future__ import annotations

from args import Args

KEEPER = "keeper"
"""First word of the names of the hosts of keepers."""
SPACE = "rainbow_iqn_apex "
"""What the namespaces of runs begin with."""


def namespace_of(args: Args) -> str:
    """In which the run's hosts have their names on Ray."""
    return f"{SPACE}{args.run_name}"


def keeper_name(args: Args) -> str:
    """Of the host of the run's keeper, or of a keeper of actors that join it."""
    last = args.id_actor + args.add_actors - 1
    return f"{KEEPER} of actors {args.id_actor} to {last}" if args.add_actors else KEEPER


def actor_number(name: str) -> int:
    """Of an actor; -1 for another process."""
    kind, _, number = name.partition(" ")
    return int(number) if kind == "actor" else -1
