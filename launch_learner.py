"""Wires one learner and runs it; `--serial` wires an actor beside it into the same process."""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import begin_program, set_up_logging

    begin_program()
    set_up_logging()

    from args import parse_args
    from parameters.usage import LEARNER

    # Parsed before the imports below, which take seconds: --help and a mistake are answered at once.
    ARGS = parse_args(page=LEARNER)

import logging
import os
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from acting.actor import Actor
from acting.links.link import ActorSlot, RunChanged
from args import Args, UserError
from learning.learner import run_serially
from learning.results import closing_sentence
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.run import read_living_run
from memory.runs.scripts import ReplayLost
from memory.server.connection import Client
from supervision.process import Stop, keep_freed_memory
from wiring.actor import build_actor
from wiring.checks import check_agent_fits, check_divided, check_played_here, check_serial
from wiring.code import canonical, check_tables
from wiring.endings import exit_on_errors
from wiring.learner import Learning, build_learner, claimed_folder
from wiring.setting import Setting, connect_redis, results_folder, setting_of_run
from wiring.sources import check_mirror_fits, check_store

if TYPE_CHECKING:  # a run of one learner imports none of it
    from learning.ranks.group import Ranks

log = logging.getLogger(__name__)

MOST_LOSSES_IN_A_ROW = 10
"""How often in a row the replay may be lost without one update in between, as it is where a server comes back
empty.
"""


def run_learner(args: Args, stop: Stop, ranks: Ranks | None = None) -> None:
    """Learn until the run ends. When Redis was emptied meanwhile, resume from a snapshot made at once.

    `ranks`: of several learners, of which this one leads. Raises UserError where that repeats without end.
    """
    check_divided(args)
    check_serial(args)
    setting = setting_of_run(args)
    check_agent_fits(setting)
    check_store(setting.args)
    if args.serial:  # else its actor says so, which may play one seat of several (--seat-runs)
        check_tables(args.envs_per_actor, args.game, setting.description)
    check_played_here(args)
    if args.gpu_replay:
        check_mirror_fits(setting)
    results_folder(args)
    client, keys = connect_redis(args, stop), Keys(args.run_name)
    learn = _learn_and_act if args.serial else partial(_learn, ranks=ranks)
    losses_in_a_row = 0
    while losses_in_a_row < MOST_LOSSES_IN_A_ROW:
        try:
            updates = learn(setting, client, keys, stop)
        except ReplayLost as lost:  # before the first snapshot of this start
            log.warning("%s Beginning again.", lost)
            updates = 0
        else:
            setting = setting.with_args(model=None)
        if updates is None:
            return
        losses_in_a_row = 0 if updates else losses_in_a_row + 1
    raise UserError(
        f"The replay was lost {MOST_LOSSES_IN_A_ROW} times in a row without one update between: the lines"
        " above say why its chunks could not be read, or that the server was emptied."
    )


def _learn(setting: Setting, client: Client, keys: Keys, stop: Stop, ranks: Ranks | None) -> int | None:
    patience_s = setting.args.redis_patience
    with (
        Lease(client, keys.learner_lease).acquire("learner", stop, patience_s) as lease,
        claimed_folder(setting.args, client, keys, stop) as folder,
    ):
        learning = build_learner(setting, client, keys, lease, folder, stop, ranks)
        do_due_tasks = learning.housekeeper.do_due_tasks
        return _save_after(lambda: learning.learner.run(stop, do_due_tasks), learning)


def _learn_and_act(setting: Setting, client: Client, keys: Keys, stop: Stop) -> int | None:
    """`--serial`: the same parts, taking turns."""
    id_actor, patience_s = setting.args.id_actor, setting.args.redis_patience
    with (
        Lease(client, keys.learner_lease).acquire("learner", stop, patience_s) as lease,
        Lease(client, keys.actor_lease(id_actor)).acquire(
            f"actor {id_actor}", stop, patience_s
        ) as actor_lease,
        claimed_folder(setting.args, client, keys, stop) as folder,
    ):
        learning = build_learner(setting, client, keys, lease, folder, stop)
        find_run = partial(read_living_run, client, keys)
        run = find_run()
        assert run is not None
        slot = ActorSlot(client, keys, actor_lease, run, find_run)
        with closing(build_actor(setting, slot, stop)) as actor:
            do_due_tasks = partial(learning.housekeeper.do_due_tasks, actor)

            def play() -> None:
                with actor.watch(learning.saver.close):
                    run_serially(actor, learning.learner, do_due_tasks, stop, learning.actor_state)

            return _save_after(play, learning, actor)


def _save_after(work: Callable[[], None], learning: Learning, actor: Actor | None = None) -> int | None:
    """Do `work` and save.

    Returns:
        None at the end of the run, or of this process. Where Redis lost the replay, so that all must be built
        again: how many updates were made until then.
    """
    before = learning.learner.updates
    try:
        with learning.saver.saving(actor):
            work()
            learning.housekeeper.each_second.record_last_updates()
    except (ReplayLost, RunChanged) as lost:
        log.warning("%s Going on from a snapshot made now.", lost)
        return learning.learner.updates - before
    log.info("%s", closing_sentence(learning.learner, learning.frames_per_step))
    return None


def _is_one_of_several() -> bool:
    """Whether torchrun has started several learners. A scheduler may set some of its variables too."""
    names = "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"
    return all(map(os.environ.get, names)) and int(os.environ["WORLD_SIZE"]) > 1


def main(args: Args) -> None:
    """Entry point."""
    with exit_on_errors():
        args, is_one_of_several = canonical(args), _is_one_of_several()
        if args.learners > 1 and not is_one_of_several:
            from wiring.ranks import start_learners

            sys.exit(start_learners(args, __file__, sys.argv[1:]))
        keep_freed_memory()
        stop = Stop().on_signals_in_native_code()
        if is_one_of_several:
            from wiring.ranks import ends_at_once, learn_together

            with ends_at_once(), exit_on_errors():
                learn_together(args, stop, run_learner)
        else:
            run_learner(args, stop)


if __name__ == "__main__":
    main(ARGS)
