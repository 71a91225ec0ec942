"""Wires one learner and runs it; `--serial` wires an actor beside it into the same process."""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import exit_quietly_on_interrupt

    exit_quietly_on_interrupt()

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from acting.actor import Actor
from acting.run_link import ActorSlot, RunChanged
from args import Args, parse_args
from learning.learner import run_serially
from memory.replay.replay import ReplayLost
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import LostLease
from memory.runs.run import RunInfo, read_living_run
from memory.server.connection import UNREACHABLE, Client, Interrupted, patiently
from supervision.process import Stop, keep_freed_memory
from wiring.actor import build_actor
from wiring.endings import exit_on_errors, set_up_logging
from wiring.learner import Learning, build_learner
from wiring.setting import Setting, canonical, check_agent_fits, check_divided, connect_redis, setting_of
from wiring.sources import check_store

log = logging.getLogger(__name__)


def run_learner(args: Args, stop: Stop) -> None:
    """Learn until the run ends. When Redis was emptied meanwhile, resume from a snapshot made at once."""
    check_divided(args)
    setting = setting_of(args)
    check_agent_fits(setting)
    check_store(setting.args)
    client, keys = connect_redis(args, stop), Keys(args.run_name)
    learn = _learn_and_act if args.serial else _learn
    while not learn(setting, client, keys, stop):
        setting = setting._replace(args=setting.args.model_copy(update={"model": None}))


def _learn(setting: Setting, client: Client, keys: Keys, stop: Stop) -> bool:
    with Lease(client, keys.learner_lease).acquire("learner", stop) as lease:
        learning = build_learner(setting, client, keys, lease, stop)
        do_due_tasks = learning.housekeeper.do_due_tasks
        return _save_after(lambda: learning.learner.run(stop, do_due_tasks), learning)


def _learn_and_act(setting: Setting, client: Client, keys: Keys, stop: Stop) -> bool:
    """`--serial`: the same parts, taking turns."""
    id_actor = setting.args.id_actor
    with (
        Lease(client, keys.learner_lease).acquire("learner", stop) as lease,
        Lease(client, keys.actor_lease(id_actor)).acquire(f"actor {id_actor}", stop) as actor_lease,
    ):
        learning = build_learner(setting, client, keys, lease, stop)

        def find_run() -> RunInfo | None:
            return read_living_run(client, keys)

        run = find_run()
        assert run is not None
        slot = ActorSlot(client, keys, actor_lease, run, find_run)
        with closing(build_actor(setting, slot, stop)) as actor:
            do_due_tasks = partial(learning.housekeeper.do_due_tasks, actor)
            play = partial(run_serially, actor, learning.learner, do_due_tasks, stop, learning.actor_state)
            return _save_after(play, learning, actor)


def _save_after(work: Callable[[], None], learning: Learning, actor: Actor | None = None) -> bool:
    """Do `work` and save; False when Redis lost the replay, so that all must be built again."""
    try:
        work()
    except (ReplayLost, RunChanged) as lost:
        slot = learning.slot
        counters = patiently(lambda: read_counters(slot.client, slot.keys), slot.patience.seconds, "Redis")
        if counters.epoch > slot.epoch:
            raise LostLease("Another learner has begun: it continues this run.") from lost
        log.warning("%s Going on from a snapshot made now.", lost)
        learning.housekeeper.close(actor)
        return False
    except (*UNREACHABLE, Interrupted):
        learning.housekeeper.close(actor)
        raise
    learning.housekeeper.finish(actor)
    return True


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    set_up_logging()
    keep_freed_memory()
    args = parse_args(argv, "Rainbow-IQN Ape-X: the learner.")
    stop = Stop().on_signals()
    with exit_on_errors():
        run_learner(canonical(args), stop)


if __name__ == "__main__":
    main()
