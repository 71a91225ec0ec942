"""Who decides which trials go on: ASHA, or nobody."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from ray.tune.schedulers import ASHAScheduler, FIFOScheduler

from lab.search.block import Search
from lab.search.trial import TrialRecord
from lab.search.worker import STEPS, VALUE


class Halving(ASHAScheduler):
    """ASHA that knows of trials before this start: what they reported still counts on its rungs."""

    def remember(self, name: str, record: TrialRecord) -> None:
        """Take in the reports of a trial that is done."""
        trial = SimpleNamespace(trial_id=name)  # all of a trial that ASHA looks at
        self.on_trial_add(None, trial)
        for steps, value in record.reports:
            self.on_trial_result(None, trial, {STEPS: steps, VALUE: value})


def scheduler_for(search: Search, total: int, done: Mapping[int, TrialRecord]) -> FIFOScheduler:
    """Of a search whose trials have `total` agent steps."""
    asha = search.asha
    if asha is None:
        return FIFOScheduler()
    halving = Halving(
        time_attr=STEPS,
        metric=VALUE,
        mode="max",
        max_t=asha.max_steps or total,
        grace_period=asha.grace_steps,
        reduction_factor=asha.reduction,
    )
    for number, record in done.items():
        halving.remember(f"before_{number}", record)
    return halving
