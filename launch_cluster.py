"""A whole run on a cluster of Ray's: Redis if none answers, learner, actors wherever there is room.

    python launch_cluster.py --ray-address auto --host-redis 10.0.0.1 --game pong --nb-actor 64

The launchers of a run by hand run as they are, each as a child of a Ray actor; docs/scale.md has the rest.
Learner and results stay on this machine. Ctrl-C saves a snapshot and ends all.
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import begin_program

    begin_program()

    from args import parse_args
    from parameters.usage import CLUSTER

    # Parsed before the imports below, which take seconds: --help and a mistake are answered at once.
    ARGS = parse_args(page=CLUSTER)

import sys
from collections.abc import Sequence
from pathlib import Path

from args import Args, UserError, fail
from cluster.names import namespace_of
from cluster.ray_session import ray_session
from envs.config import EnvError, EnvFailure
from memory.server.connection import RedisRefused
from parameters.declare import flag_of
from supervision.last_words import last_words
from supervision.process import USER_ERROR, Stop, say
from wiring.code import canonical, check_games
from wiring.starting.run_plan import RunPlan, check_parts, from_here, snapshots_of

ONE_OF = ("status", "stop", "add_actors", "remove_actors")
OWN_WAY = {
    "id_actor": "every actor gets its own number",
    "gpu_number": "Ray says who has which GPU (--learner-gpus, --actor-gpus)",
    "gpu_numbers": "Ray says who has which GPU (--learner-gpus, --actor-gpus)",
    "serial": "there would be one process",
}
"""Parameters that this program sets itself, and how."""


def check(args: Args) -> None:
    """Raises UserError for words that do not go together here."""
    named = [flag_of(name) for name in ONE_OF if getattr(args, name)]
    if len(named) > 1:
        raise UserError(f"{' and '.join(named)} exclude each other: give one.")
    for name, why in OWN_WAY.items():
        if name in args.model_fields_set and getattr(args, name):
            raise UserError(f"{flag_of(name)} is not for launch_cluster.py: {why}.")
    if not args.ray_address and (args.detach or named):
        flag = "--detach" if args.detach else named[0]
        raise UserError(
            f"{flag} needs a Ray that outlives this program: `RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 ray start"
            " --head --node-ip-address 127.0.0.1 --port 6380` starts one on this machine; then give"
            " --ray-address 127.0.0.1:6380."
        )


def run(args: Args, argv: Sequence[str], stop: Stop) -> int:
    """What the command line asks for, once Ray is there; exit code. Raises UserError."""
    from cluster import commands
    from cluster.placement import check_reachable, check_room

    plan = RunPlan(args, argv, snapshots_of(Path(args.path_to_results), args.file_name))
    if args.status:
        return commands.status(plan)
    if args.stop:
        return commands.end(plan, stop)
    if args.remove_actors:
        return commands.remove(plan)
    check_reachable(args)
    if args.add_actors:
        args = args.model_copy(update={"id_actor": commands.free_numbers(args)})
        return commands.start(RunPlan(args, argv, plan.earlier), stop)
    if sentence := check_room(args):
        say(sentence)
    code = commands.start(plan, stop)
    if code != USER_ERROR and not args.detach:
        for line in last_words(plan.folder, args.file_name, ["python", from_here(__file__), *argv]):
            say(line)
    return code


def main(args: Args, argv: Sequence[str]) -> int:
    """Entry point; exit code."""
    stop = Stop()
    try:
        check(args)
        args = canonical(args)  # as the processes call the run
        if not (args.status or args.stop or args.remove_actors):
            check_games(args)
            if not args.add_actors:
                check_parts(args)
        with ray_session(args.ray_address, stop, "cluster", namespace_of(args)):
            return run(args, argv, stop)
    except (UserError, EnvError, EnvFailure, RedisRefused) as error:
        fail(error)


if __name__ == "__main__":
    sys.exit(main(ARGS, sys.argv[1:]))
