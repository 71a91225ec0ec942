"""Wires one actor and runs it: in training, in evaluation (--eval), or alone, without Redis (`run_alone`)."""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import begin_program, set_up_logging

    begin_program()
    set_up_logging()

    from args import parse_args
    from parameters.usage import ACTOR

    # Parsed before the imports below, which take seconds: --help and a mistake are answered at once.
    ARGS = parse_args(page=ACTOR)

import logging
from contextlib import closing
from functools import partial
from pathlib import Path

from acting.actor import Actor
from acting.links.link import ActorSlot, RunChanged
from args import Args, UserError
from envs.multi.barrier import OtherSeatEnded, SeatView, play_seats
from learning.saved.snapshot import wait_for_snapshot
from memory.runs.counters import read_counters
from memory.runs.episodes import recent_episodes
from memory.runs.keys import Keys
from memory.runs.lease import Lease, first_free
from memory.runs.run import CHUNK_FORMAT, wait_for_run
from memory.server.connection import Client
from memory.server.patience import Patience
from supervision.process import Stop, keep_freed_memory
from wiring.actor import build_actor, build_lone_actor
from wiring.checks import check_agent_fits, with_own_agent
from wiring.code import canonical, check_code
from wiring.endings import exit_on_errors
from wiring.seats import args_of_seats, at_tables, build_tables
from wiring.setting import connect_redis, setting_of, setting_of_run

log = logging.getLogger(__name__)


def run_seats(args: Args, stop: Stop) -> None:
    """Play every seat of a game, each for a run of its own."""
    own = args_of_seats(args)
    client = connect_redis(args, stop)
    found = [wait_for_run(client, Keys(each.run_name), Patience(args.redis_patience, stop)) for each in own]
    settings = [setting_of(each.adopt(run.settings)) for each, run in zip(own, found, strict=True) if run]
    if len(settings) == len(own):
        steps = read_counters(client, Keys(own[0].run_name)).steps
        tables = build_tables(settings, steps)
        play_seats(tables, lambda seat, env: run_actor(own[seat], stop, env))


def run_actor(args: Args, stop: Stop, env: SeatView | None = None) -> None:
    """Act until the run ends; when the learner begins anew with other settings, begin anew with it.

    `env`: its environments, where it does not make them by itself: then it cannot begin anew.
    """
    if args.ckpt_dir and Path(args.ckpt_dir).is_file():
        raise UserError(f"--ckpt-dir {args.ckpt_dir} is a file: name the folder of the snapshots.")
    if args.no_push and (args.agent == "random" or args.ckpt_dir):
        if args.id_actor < 0:
            raise UserError("--id-actor must be 0 or more for an actor without a run.")
        return run_alone(args, stop)
    client, keys = connect_redis(args, stop), Keys(args.run_name)
    find_run = partial(wait_for_run, client, keys, Patience(args.redis_patience, stop))
    reported, began = recent_episodes(), 0
    while (run := find_run()) is not None:
        if run.chunk_format != CHUNK_FORMAT:
            raise UserError(
                f"The learner of run {args.run_name!r} stores experience in format {run.chunk_format}, this"
                f" program in format {CHUNK_FORMAT}: start both from the same version."
            )
        if run.began != began:
            reported, began = recent_episodes(), run.began
        check_code(args, run.settings, f"What Redis holds of run {args.run_name!r}")
        setting = setting_of_run(args.adopt(with_own_agent(args, run.settings)))
        check_agent_fits(setting)
        if env is not None:
            setting = at_tables(setting, env)
        id_actor, lease = take_number(args.id_actor, client, keys, stop, args.redis_patience)
        setting = setting.with_args(id_actor=id_actor)
        with lease:
            try:
                slot = ActorSlot(client, keys, lease, run, find_run, reported)
                with closing(build_actor(setting, slot, stop, env)) as actor:
                    _play(actor)
                return None
            except RunChanged as change:
                if env is not None:
                    raise UserError(f"{change} Start this actor again, and so all its seats.") from change
                log.info("%s Actor %d begins anew.", change, id_actor)
    return None


def _play(actor: Actor) -> None:
    try:
        actor.run()
    except OtherSeatEnded as closed:
        log.info("%s", closed)
        actor.flush()


def take_number(asked: int, client: Client, keys: Keys, stop: Stop, patience_s: float) -> tuple[int, Lease]:
    """The number of this actor, and the right to have it. `asked` below 0: the lowest that is free."""
    if asked >= 0:
        return asked, Lease(client, keys.actor_lease(asked)).acquire(f"actor {asked}", stop, patience_s)
    id_actor, lease = first_free(client, keys.actor_lease)
    log.info("This is actor %d.", id_actor)
    return id_actor, lease


def run_alone(args: Args, stop: Stop) -> None:
    """Play --T-max steps without Redis or a learner: at random, or with the snapshots in --ckpt-dir, under
    the settings of the first.
    """
    if args.ckpt_dir:
        snapshot = wait_for_snapshot(Path(args.ckpt_dir), args.file_name, stop)
        if snapshot is None:
            return
        where = f"A snapshot in {args.ckpt_dir}"
        check_code(args, snapshot["settings"], where)
        args = args.with_defaults({**snapshot["settings"], "T_max": args.T_max}, where)
    with closing(build_lone_actor(setting_of_run(args), stop)) as actor:
        actor.run()


def main(args: Args) -> None:
    """Entry point."""
    keep_freed_memory()
    stop = Stop().on_signals_in_native_code()
    with exit_on_errors():
        args = canonical(args)
        (run_seats if args.seat_runs else run_actor)(args, stop)


if __name__ == "__main__":
    main(ARGS)
