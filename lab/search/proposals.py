"""What is tried next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ray import tune
from ray.tune.search import Searcher

from args import Plain
from lab.search.block import Search, Values
from lab.search.trial import TrialRecord, planned
from lab.search.worker import VALUE


class Proposals(Searcher):
    """Parameters of one trial after the other, with its number: planned, or as Optuna proposes.

    A callable for names or folders, which Tune has too, would not do: it is called on copies of itself.
    """

    def __init__(self, search: Search, numbers: Sequence[int], records: Mapping[int, TrialRecord]) -> None:
        """`numbers` of the trials to run; those with a record keep its parameters."""
        super().__init__(metric=VALUE, mode="max")
        self._planned = planned(search)
        begun = [number for number in numbers if number in records]
        new = [number for number in numbers if number not in records]
        self._optuna = (
            _optuna(search, [records[n].parameters for n in begun], records) if not self._planned else None
        )
        self._numbers = [*begun, *new] if self._optuna else [*numbers]

    def suggest(self, trial_id: str) -> Any:
        """A trial's config, or Tune's word for no more."""
        if not self._numbers:
            return Searcher.FINISHED
        number = self._numbers.pop(0)
        parameters = self._optuna.suggest(trial_id) if self._optuna else self._planned[number]
        return {"number": number, "parameters": parameters}

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Optuna learns from its end, however it came; from its value at that time."""
        if self._optuna:
            value = (result or {}).get(VALUE, float("nan"))
            known = value == value
            self._optuna.on_trial_complete(trial_id, {VALUE: value} if known else None, error or not known)

    def save(self, checkpoint_path: str) -> None:
        """Nothing: trial.json has it."""

    def restore(self, checkpoint_path: str) -> None:
        """Never called."""


def _optuna(search: Search, first: Sequence[Mapping[str, Plain]], records: Mapping[int, TrialRecord]) -> Any:
    """Optuna's tree-structured Parzen estimator, which proposes `first` again and knows what is done."""
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    searcher = OptunaSearch(
        {name: _domain(values) for name, values in search.flags.items()},
        metric=VALUE,
        mode="max",
        points_to_evaluate=[dict(parameters) for parameters in first],
        seed=search.seed + len(records),  # or a later start would draw the first ones again
    )
    for record in records.values():
        if record.is_done and search.metric in record.measures:
            searcher.add_evaluated_point(dict(record.parameters), record.measures[search.metric])
    return searcher


def _domain(values: Values) -> Any:
    if values.randint:
        low, high = values.randint
        return tune.randint(low, high + 1)
    if values.loguniform:
        return tune.loguniform(*values.loguniform)
    return tune.uniform(*values.uniform) if values.uniform else tune.choice(values.choice)
