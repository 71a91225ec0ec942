"""The keeper of a run on the cluster, a program that stays with it when nobody watches.

Starts the run's processes, starts dead ones again, and ends all: what start_learning.py does, for processes
on other machines. `--add-actors` has a keeper of its own, for actors alone.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from args import Args, UserError, fail, parse_args
from cluster.names import KEEPER, namespace_of
from cluster.placement import options_for
from cluster.ray_session import ray_session
from cluster.remote_child import RemoteChild
from memory.server.connection import PASSWORD_VARIABLE, RedisRefused
from supervision.child import ChildSpec
from supervision.process import Stop, exit_quietly_on_interrupt, say
from supervision.redis_server import RedisServer, RedisServerError
from supervision.supervisor import Output, Supervisor
from wiring.code import canonical
from wiring.starting.run_plan import RunPlan, snapshots_of

LEAVING_S = 20.0
"""Longest wait (seconds) for the keepers of actors that joined the run to leave it: an actor has 15 s to send
what it has.
"""


def host_of(name: str) -> Any:
    """None where there is none, or none any more."""
    try:
        return ray.get_actor(name)
    except ValueError:
        return None


class ServerForAll(RedisServer):
    """Ends after those who joined the run have left it: they send what they have."""

    def stop(self, keep: bool = False, hurried: Callable[[], bool] = lambda: False) -> str:
        """As RedisServer's."""
        joined = [name for name in ray.util.list_named_actors() if name.startswith(f"{KEEPER} of")]
        keepers = [keeper for keeper in map(host_of, joined) if keeper is not None]
        for keeper in keepers:
            keeper.terminate.remote()
        deadline = time.monotonic() + LEAVING_S
        while keepers and time.monotonic() < deadline and not hurried():
            reports = [keeper.whereabouts.remote() for keeper in keepers]
            done, _ = ray.wait(reports, num_returns=len(reports), timeout=1.0)
            keepers = [k for k, report in zip(keepers, reports, strict=True) if not _has_ended(report, done)]
        return super().stop(keep, hurried)


def _has_ended(report: object, done: list[object]) -> bool:
    if report not in done:
        return False
    try:
        return ray.get(report).exit_code is not None
    except ray.exceptions.RayError:
        return True


def keep(plan: RunPlan) -> int:
    """Until the run's end; the supervisor's exit code. Raises RedisServerError and OSError."""
    args = plan.args
    first, count = (args.id_actor, args.add_actors) if args.add_actors else (0, args.nb_actor)
    learner = None if args.add_actors else plan.learner_process(learner_threads(args))
    threads = max(1, int(args.actor_cpus))
    actors = [plan.actor_process(number, threads) for number in range(first, first + count)]
    token = f"rainbow_iqn_apex-{secrets.token_hex(4)}"

    def process(spec: ChildSpec) -> RemoteChild:
        spec = replace(spec, environment={**spec.environment, **password()})
        return RemoteChild(spec, options_for(spec.role, args), Path.cwd(), token)

    def is_finished(role: str) -> bool:
        return role != "learner" or plan.is_finished(role)  # an actor that ends well was told to

    server = RedisServer if args.add_actors else ServerForAll
    redis = server(plan.redis, plan.conf_file, plan.log("redis"), plan.kept)
    return Supervisor(learner, actors, redis, is_finished, Output(say, say), plan.limits, process).run()


def learner_threads(args: Args) -> int:
    """CPU threads of each learner."""
    return max(1, int(args.learner_cpus) // args.learners)


def password() -> Mapping[str, str]:
    """Redis's, where the environment has it: Ray hands it to the processes on other machines."""
    given = os.environ.get(PASSWORD_VARIABLE)
    return {PASSWORD_VARIABLE: given} if given else {}


def main() -> int:
    """Entry point; exit code."""
    args = canonical(parse_args())
    plan = RunPlan(args, sys.argv[1:], snapshots_of(Path(args.path_to_results), args.file_name))
    try:
        with ray_session(args.ray_address, Stop(), "cluster", namespace_of(args)):
            return keep(plan)
    except (UserError, RedisServerError, RedisRefused) as error:
        fail(error)
    except OSError as error:
        fail(plan.unwritable(error))


if __name__ == "__main__":
    exit_quietly_on_interrupt()
    sys.exit(main())
