"""Actor and learner taking turns in one process: the same parts, without threads between them, exactly
repeatable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from acting.actor import Actor
from learning.learner import Learner
from learning.snapshot import restoring


def run_serially(
    actor: Actor,
    learner: Learner,
    keep_up: Callable[[], None],
    stopped: Callable[[], bool],
    saved: Mapping[str, Any] | None = None,
) -> None:
    """A vector step, then every update that is due, until the run ends or a stop is asked for.

    Priorities are written to Redis after each update, before the next batch is drawn. With `saved`, an
    actor's state, both go on as if they had never stopped: what was published last is not published anew. A
    stopped actor that can be saved keeps its unfinished chunks; any other pushes them.
    """
    if saved is None:
        learner.publish()
    else:
        with restoring():
            actor.load_state_dict(saved)
        learn_what_is_due(learner, stopped)
    while not (stopped() or actor.finished):
        actor.step()
        actor.wait_until_stored()
        learn_what_is_due(learner, stopped)
        keep_up()
    if actor.finished or actor.state_dict() is None:
        actor.flush()
        learn_what_is_due(learner, stopped)


def learn_what_is_due(learner: Learner, stopped: Callable[[], bool]) -> None:
    """Do the updates that the limiter allows."""
    source = learner.source
    source.ingest()
    while source.owes and not stopped():
        batch = source.draw()
        source.take_back(batch, learner.update(batch))
        source.settle(write_back=True)
