"""What the program in the terminal does: starts a run's keeper, follows it, finds it again, has it end."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ray

from args import Args
from cluster.host import ProcessHost, Whereabouts
from cluster.keeper import host_of, password
from cluster.names import KEEPER, SPACE, actor_number, keeper_name
from cluster.placement import on_this_machine
from cluster.ray_session import ROOT
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.run import read_living_run, read_settings
from memory.server.connection import RedisConfig, make_client
from memory.server.replies import UNREACHABLE
from parameters.declare import UserError
from supervision.child import ChildSpec
from supervision.process import Stop, say
from wiring.starting.run_plan import RunPlan

ANSWER_S = 3.0
"""Longest wait (seconds) for an answer: a host that has given none by then has no room yet, or is starting.
"""
REPORT_EVERY_S = 1.0
POLL_EVERY_S = 0.2


def start(plan: RunPlan, stop: Stop) -> int:
    """Start the run, or actors that join it, and follow until the end, or with --detach until it goes on by
    itself; exit code. Raises UserError.
    """
    args, name = plan.args, keeper_name(plan.args)
    _forget_ended(name, args)
    address = ray.get_runtime_context().gcs_address
    words = [*plan.argv, "--ray-address", address, "--id-actor", str(args.id_actor)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ.get("PATH", ""), **password()}
    spec = ChildSpec(KEEPER, partial(keeper_command, words), plan.log(name.replace(" ", "_")), environment)
    options: dict[str, Any] = {"name": name, "num_cpus": 0, "scheduling_strategy": on_this_machine()}
    if args.detach:
        options["lifetime"] = "detached"
    keeper = ray.remote(ProcessHost).options(**options).remote(spec, Path.cwd())
    code = follow(keeper, stop, (lambda: _goes_on(plan)) if args.detach else lambda: False)
    if code is None:
        say("It goes on without this terminal: --status shows it, --stop ends it.")
        return 0
    ray.kill(keeper)
    return code


def _goes_on(plan: RunPlan) -> bool:
    """Whether a run has begun: its learner has found nothing wrong. Or who joins has a place."""
    if plan.args.add_actors:
        return whereabouts().get(f"actor {plan.args.id_actor}") is not None
    return plan.read(read_living_run) is not None


def keeper_command(words: Sequence[str]) -> list[str]:
    """Program and arguments of a keeper, in whatever Python asks."""
    return [sys.executable, "-m", "cluster.keeper", *words]


def follow(keeper: Any, stop: Stop, is_enough: Callable[[], bool]) -> int | None:
    """Say what a keeper says, and hand on every Ctrl-C, until it has ended or `is_enough`; its exit code."""
    while not is_enough():
        try:
            state = ray.get(keeper.state.remote(REPORT_EVERY_S))
        except ray.exceptions.RayActorError as error:
            raise UserError(f"The run is lost: {' '.join(str(error).split())}") from error
        for line in state.lines:
            say(line)
        if state.exit_code is not None:
            return int(state.exit_code)
        if stop():
            stop.clear()
            keeper.terminate.remote()
    return None


def whereabouts() -> dict[str, Whereabouts | None]:
    """Name -> place of the run's processes; None for one that waits for room, is starting or moves."""
    hosts = {name: host_of(name) for name in ray.util.list_named_actors()}
    reports = {name: host.whereabouts.remote() for name, host in hosts.items() if host is not None}
    if reports:
        ray.wait(list(reports.values()), num_returns=len(reports), timeout=ANSWER_S)
    return {name: _answer(report) for name, report in reports.items()}


def status(plan: RunPlan) -> int:
    """Say what is where, and forget a run that has ended; exit code. Raises UserError."""
    places = _places(plan.args)
    for name, place in sorted(places.items(), key=lambda item: _order(item[0])):
        say(f"{name:<12}{_described(place)}")
    if counters := plan.read(read_counters):
        run = plan.read(read_settings)
        t_max = plan.args.T_max if run is None else run.settings.get("T_max", plan.args.T_max)
        say(f"{counters.played:,} of {t_max:,} agent steps are played.")
    for name, place in places.items():
        if name.startswith(KEEPER) and place is not None and place.exit_code is not None:
            _forget(name)
    return 0


def end(plan: RunPlan, stop: Stop) -> int:
    """Have the run save and end, and wait for that; exit code. Raises UserError."""
    names = [name for name in _places(plan.args) if name.startswith(KEEPER)]
    codes = [_end(name, stop) for name in sorted(names, reverse=True)]  # who joined leaves first
    say(f"Run {plan.args.run_name!r} has ended.")
    return max(codes, default=0)


def _end(name: str, stop: Stop) -> int:
    if (keeper := host_of(name)) is None:  # it has ended meanwhile
        return 0
    keeper.terminate.remote()
    while (code := _exit_code(keeper)) is None:
        time.sleep(POLL_EVERY_S)
        if stop():  # Ctrl-C: hurry
            stop.clear()
            keeper.terminate.remote()
    _forget(name)
    return code


def _exit_code(keeper: Any) -> int | None:
    """0 of one that its own terminal has forgotten meanwhile."""
    try:
        place: Whereabouts = ray.get(keeper.whereabouts.remote())
    except ray.exceptions.RayActorError:
        return 0
    return place.exit_code


def remove(plan: RunPlan) -> int:
    """Have actors leave; exit code. Raises UserError."""
    places = _places(plan.args)
    playing = sorted(
        (actor_number(name) for name, place in places.items() if place and actor_number(name) >= 0)
    )
    leaving = playing[-plan.args.remove_actors :]
    if len(leaving) < plan.args.remove_actors:
        raise UserError(f"Run {plan.args.run_name!r} has {len(playing)} actors on this cluster.")
    hosts = [host_of(f"actor {number}") for number in leaving]
    told = [host.terminate.remote() for host in hosts if host is not None]
    if told:  # the others have ended meanwhile
        ray.wait(told, num_returns=len(told), timeout=ANSWER_S)
    say(f"These actors leave: {', '.join(map(str, leaving))}.")
    return 0


def free_numbers(args: Args) -> int:
    """The first of --add-actors numbers in a row that no actor of the run has. Raises UserError."""
    client, keys = make_client(args.select(RedisConfig)), Keys(args.run_name)
    taken = {actor_number(name) for name in ray.util.list_named_actors()}
    first = 0
    try:
        with contextlib.closing(client):
            if read_living_run(client, keys) is None:
                raise UserError(f"Nobody learns run {args.run_name!r}: there is nothing to join.")
            while wrong := [
                number
                for number in range(first, first + args.add_actors)
                if number in taken or client.exists(keys.actor_lease(number))
            ]:
                first = wrong[-1] + 1
    except UNREACHABLE as error:
        where, reason = args.select(RedisConfig), str(error).rstrip(".")
        raise UserError(f"No Redis server answers at {where}: {reason}.") from error
    return first


def _forget_ended(name: str, args: Args) -> None:
    """Make room for a keeper; raises UserError where a living one has that name."""
    host = host_of(name)
    if host is None:
        return
    place = whereabouts().get(name)
    if place is None or place.exit_code is None:
        raise UserError(
            f"Run {args.run_name!r} is on this cluster already: --status shows it, --stop ends it, and"
            " --run gives this one another name."
        )
    _forget(name)


def _forget(name: str) -> None:
    """Remove an ended keeper's host; a terminal that follows the keeper does so first."""
    deadline = time.monotonic() + ANSWER_S
    while (host := host_of(name)) is not None:
        if time.monotonic() > deadline:
            ray.kill(host)
        time.sleep(POLL_EVERY_S)


def _places(args: Args) -> dict[str, Whereabouts | None]:
    places = whereabouts()
    if places:
        return places
    spaces = {host["namespace"] for host in ray.util.list_named_actors(all_namespaces=True)}
    runs = sorted(space.removeprefix(SPACE) for space in spaces if space.startswith(SPACE))
    there = f"these are there: {', '.join(runs)}" if runs else "none is there"
    raise UserError(f"Run {args.run_name!r} is not on this cluster; {there}.")


def _answer(report: Any) -> Whereabouts | None:
    try:
        place: Whereabouts = ray.get(report, timeout=0)
        return place
    except (ray.exceptions.RayError, TimeoutError):
        return None


def _described(place: Whereabouts | None) -> str:
    if place is None:
        return "waits for room, or is starting"
    state = "" if place.exit_code is None else f", ended with exit code {place.exit_code}"
    return f"on {place.machine} (Ray's {place.node[:8]}), process {place.pid}{state}"


def _order(name: str) -> tuple[bool, bool, int, str]:
    return (not name.startswith(KEEPER), name != "learner", actor_number(name), name)
