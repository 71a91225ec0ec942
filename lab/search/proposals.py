"""Which flags are tried next, and which trials ASHA stops early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from args import Plain
from lab.search.space import Asha, Search, Values, combinations
from lab.search.trial import TrialRecord


def planned(search: Search) -> list[dict[str, Plain]]:
    """The flags of every trial by number; none where they depend on results (method optuna).

    More trials of a random search begin with the same ones.
    """
    if search.method == "grid":
        return list(combinations(search))
    return [_drawn(search, number) for number in range(search.count)] if search.method == "random" else []


def _drawn(search: Search, number: int) -> dict[str, Plain]:
    generator = np.random.default_rng([search.seed, number])
    return {name: _draw(values, generator) for name, values in search.flags.items()}


def _draw(values: Values, generator: np.random.Generator) -> Plain:
    if values.randint:
        return int(generator.integers(*values.randint, endpoint=True))
    if values.loguniform:
        drawn = np.exp(generator.uniform(*np.log(values.loguniform)))
        return float(np.clip(drawn, *values.loguniform))  # rounding may lead beyond the bounds
    if values.uniform:
        return float(generator.uniform(*values.uniform))
    return values.choice[generator.integers(len(values.choice))]


class Proposals:
    """Flags of one trial after another: planned, or proposed by Optuna from the trials that are done."""

    def __init__(self, search: Search, numbers: Sequence[int], records: Mapping[int, TrialRecord]) -> None:
        """`numbers` of the trials to run; those with a record keep its flags."""
        self._planned = planned(search)
        self._numbers, self._metric = [*numbers], search.metric
        self._asked: dict[int, Any] = {}  # Optuna's trials that have not ended
        if not self._planned:
            begun = [number for number in numbers if number in records]
            self._numbers = [*begun, *(number for number in numbers if number not in records)]
            self._space = {name: _distribution(values) for name, values in search.flags.items()}
            self._study = _study(search, self._space, begun, records)

    def __len__(self) -> int:
        """Trials that are left."""
        return len(self._numbers)

    def next(self) -> tuple[int, dict[str, Plain]]:
        """Number and flags of the next trial."""
        number = self._numbers.pop(0)
        if self._planned:
            return number, self._planned[number]
        self._asked[number] = self._study.ask(self._space)
        return number, self._asked[number].params

    def learn(self, number: int, record: TrialRecord) -> None:
        """A trial has ended; Optuna takes in its last value, or that it has none."""
        if number in self._asked:
            from optuna.trial import TrialState

            value = record.measures.get(self._metric) if record.is_done else None
            self._study.tell(self._asked.pop(number), value, TrialState.FAIL if value is None else None)


def _study(search: Search, space: Any, begun: Sequence[int], records: Mapping[int, TrialRecord]) -> Any:
    """A study that knows what is done, and proposes the flags of `begun` again first."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seed = search.seed + len(records)  # or a later start would draw the first ones again
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    for number in begun:
        study.enqueue_trial(dict(records[number].parameters))
    for record in records.values():
        if record.is_done and search.metric in record.measures:
            value, flags = record.measures[search.metric], dict(record.parameters)
            study.add_trial(optuna.trial.create_trial(value=value, params=flags, distributions=space))
    return study


def _distribution(values: Values) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if values.randint:
        return IntDistribution(*values.randint)
    bounds = values.loguniform or values.uniform
    if bounds:
        return FloatDistribution(*bounds, log=values.loguniform is not None)
    return CategoricalDistribution(values.choice)


def is_stopped_early(asha: Asha, number: int, records: Mapping[int, TrialRecord]) -> bool:
    """ASHA's rule: at a rung a trial continues if it is among the best 1 in `reduction` that came so far.

    Rungs are at `grace_steps` and at so many times as many steps each.
    """
    steps, rung = records[number].agent_steps, asha.grace_steps
    while rung < steps:
        rung *= asha.reduction
    values = {n: dict(record.reports).get(rung) for n, record in records.items()} if rung == steps else {}
    own = values.pop(number, None)
    others = [value for value in values.values() if value is not None]
    if own is None or not others:
        return False
    return bool(own < np.percentile(others, 100 * (1 - 1 / asha.reduction)))
