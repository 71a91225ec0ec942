"""The `search` block of a spec: which flags are varied and how, checked before anything starts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, StrictInt, model_validator

from args import Args, Plain, UserError, checked_value
from lab.files import Block, Number, allowed, checked, dash, dashed
from parameters.spec_file import spec_flags
from reporting.measures.fitness import standard_of

RESERVED_FLAGS = ("run", "path_to_results", "id_actor", "model")
"""Flags that the lab gives to each session itself."""
DRAWN_BY = "choice, uniform, loguniform or randint"
MOST_TRIALS = 10_000
"""Most trials of a search, drawn or listed (our choice)."""
INNER = 0.382
"""Share of the way between its bounds at which a range is checked too."""


class Values(Block):
    """What one flag may be: exactly one of these."""

    choice: tuple[Plain, ...] = Field((), min_length=1)
    uniform: tuple[Number, Number] | None = None  # lowest and highest
    loguniform: tuple[Number, Number] | None = None  # the same, alike in every power of ten
    randint: tuple[StrictInt, StrictInt] | None = None  # the same, both included
    grid: tuple[Plain, ...] = Field((), min_length=1)  # each of them, for method grid

    @model_validator(mode="after")
    def _one_of_them(self) -> Values:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"name exactly one of {allowed(Values)}")
        if self.bounds and self.bounds[0] >= self.bounds[1]:
            raise ValueError("the first bound must be below the second")
        if self.loguniform and self.loguniform[0] <= 0:
            raise ValueError("both bounds must be above 0")
        return self

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lowest and highest; None where the values are listed."""
        return self.uniform or self.loguniform or self.randint

    @property
    def listed(self) -> tuple[Plain, ...]:
        """The values themselves; none between bounds."""
        return self.choice or self.grid


class Asha(Block):
    """Asynchronous successive halving (Li et al. 2018, arXiv 1810.05934).

    Steps are agent steps of a trial's sessions, one after the other.
    """

    grace_steps: StrictInt = Field(ge=1)  # before which no trial is stopped
    reduction: StrictInt = Field(4, ge=2)  # eta: 1 in eta continues; each rung is eta times the last
    max_steps: StrictInt | None = Field(None, ge=1)  # after which it is finished; default: all of its steps


class Search(Block):
    """How flags are varied."""

    flags: Mapping[str, Values]
    method: Literal["grid", "random", "optuna"] = "random"
    trials: StrictInt | None = Field(None, ge=1, le=MOST_TRIALS)
    metric: Literal["fitness", "strength", "score"] = "fitness"  # what is maximised (docs/fitness.md)
    asha: Asha | None = None
    cpus: StrictInt = Field(1, ge=1)  # of each trial
    gpus: Number = Field(0.0, ge=0)
    concurrent: StrictInt | None = Field(None, ge=1)  # trials at a time; default: as there is room
    seed: StrictInt = Field(0, ge=0, lt=2**31)  # of the values drawn

    @property
    def count(self) -> int:
        """Number of trials."""
        return self.trials or math.prod(len(values.grid) for values in self.flags.values())


def search_of(block: Mapping[str, Any], args_of: Callable[..., Args], sessions: int, where: str) -> Search:
    """The search of an experiment, its values of the flags' own types.

    Args:
        args_of: the experiment's parameters with changes.
        sessions: of a trial.

    Raises UserError.
    """
    inside: dict[str, object] = {}
    if "flags" in block:
        inside["flags"] = _flags(block["flags"], where)
    if block.get("asha") is not None:
        inside["asha"] = checked(Asha, dashed(block, "asha", Asha, where), "search.asha", where)
    search = checked(Search, {**block, **inside}, "search", where)
    args = args_of()
    for broken, sentence in (*_rules(search, args), *_asha_rules(search, args.T_max * sessions)):
        if broken:
            raise UserError(f"{where}: search{sentence}")
    for changes in combinations(search):
        args_of(**changes)
    return search


def combinations(search: Search) -> Iterator[dict[str, Plain]]:
    """All combinations of a grid, the last flag changing first; none where there is no grid."""
    if search.method == "grid":
        for values in itertools.product(*(values.grid for values in search.flags.values())):
            yield dict(zip(search.flags, values, strict=True))


def samples(search: Search) -> Iterator[dict[str, Plain]]:
    """Each listed value of a flag, and both ends of a range, beside the first of every other flag."""
    values = {name: each.bounds or each.listed for name, each in search.flags.items()}
    first: dict[str, Plain] = {name: found[0] for name, found in values.items()}
    yield first
    for name, found in values.items():
        yield from ({**first, name: value} for value in found[1:])


def _flags(block: object, where: str) -> dict[str, Values]:
    if not isinstance(block, dict) or not block:
        raise UserError(f"{where}: search.flags must name flags, each with one of {allowed(Values)}.")
    flags, written = spec_flags(block, f"{where}: search.flags", Args.model_fields)
    return {name: _values(name, body, f"search.flags.{written[name]}", where) for name, body in flags.items()}


def _values(name: str, body: object, key: str, where: str) -> Values:
    """Raises UserError also where the flag takes no such values."""
    if name in (*RESERVED_FLAGS, "spec", "seed"):
        raise UserError(f"{where}: {key} is set by the lab; remove it.")
    if not isinstance(body, dict):
        raise UserError(f"{where}: {key} must hold one of {allowed(Values)}, as `choice: [1, 2]`.")
    values = checked(Values, body, key, where)
    tried = values.listed
    if values.bounds:
        low, high = values.bounds
        tried = (low, high) if values.randint else (low, high, low + INNER * (high - low))
    try:
        as_flags = tuple(checked_value(name, value, key) for value in tried)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    return values if values.bounds else Values.model_validate({"grid" if values.grid else "choice": as_flags})


def _rules(search: Search, args: Args) -> Iterator[tuple[bool, str]]:
    """Whether each is broken, and the sentence's end."""
    gridded = search.method == "grid"
    wrong = [dash(name) for name, values in search.flags.items() if bool(values.grid) != gridded]
    first = f".flags.{wrong[0]}" if wrong else ""
    others = f"which method {search.method} does not take: choose {DRAWN_BY}."
    yield gridded and bool(wrong), f"{first} must be a grid: method grid takes nothing else."
    yield bool(wrong), f"{first} is a grid, {others}"
    yield (
        gridded and search.trials is not None,
        ".trials does not go with method grid, which tries all; omit it.",
    )
    yield not gridded and search.trials is None, f" needs trials, their number, for method {search.method}."
    yield search.count > MOST_TRIALS, f".flags makes {search.count} combinations: {MOST_TRIALS} are the most."
    standard = search.metric == "score" or "game" in search.flags or all(map(standard_of, args.games))
    why = f"needs a standard, and none is known for {args.game} (docs/fitness.md): use score."
    yield not standard, f".metric {search.metric} {why}"


def _asha_rules(search: Search, steps: int) -> Iterator[tuple[bool, str]]:
    """The rules for ASHA; `steps` are those of a trial's sessions together."""
    if search.asha is None:
        return
    grace, most = search.asha.grace_steps, search.asha.max_steps or steps
    yield "T_max" in search.flags, ".asha compares trials of one length: it does not go with flags.T-max."
    yield most > steps, f".asha.max-steps {most} is beyond a trial's {steps} steps (T-max times sessions)."
    yield grace > most, f".asha.grace-steps {grace} must be at most {most}, a trial's steps."
