"""Spec files: which experiments they hold, checked before anything starts.

A file holds one experiment, called as the file: flags by name, and perhaps `meta`. Or it holds several below
`experiments`, each of that kind under its name; the other keys are for all of them. There
`spec` names a file of flags to begin from, as seen from the file that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field, StrictBool, StrictInt

from args import Args, Plain, UserError, args_type, checked_args
from lab.files import Block, Number, checked, dash, dashed, name_fault
from lab.search.space import RESERVED_FLAGS, Search, samples, search_of
from parameters.spec_file import (
    BLOCKS,
    SpecFlags,
    agent_of_spec,
    read_mapping,
    read_spec,
    read_text,
    spec_flags,
)


class Meta(Block):
    """How an experiment is repeated."""

    sessions: StrictInt = Field(1, ge=1, le=1000)  # runs of a trial, with seeds --seed, --seed + 1, ...
    budget_minutes: Number | None = Field(None, gt=0)  # after which a session is stopped and counts as it is
    extra: StrictBool = False  # left out of a benchmark unless it is named or --all is given
    recipe: str = ""  # what a benchmark calls its agent; published.csv may have scores under that name
    games: tuple[str, ...] = ()  # that mode benchmark plays, in place of --game


@dataclass(frozen=True)
class Experiment:
    """One experiment of a spec file, checked."""

    file: Path
    name: str
    flags: Mapping[str, Plain]  # those that the spec names
    meta: Meta
    search: Search | None = None  # what mode search varies
    written: Mapping[str, str] = field(default_factory=dict)  # the names of its flags in a sentence

    @property
    def where(self) -> str:
        """The beginning of a sentence about it."""
        return f"{self.file}, experiment {self.name}"

    def args(self, **changes: Plain) -> Args:
        """Its parameters with `changes`. Raises UserError."""
        try:
            return checked_args({**self.flags, **changes}, self.written)
        except UserError as error:
            raise UserError(f"{self.where}: {error}") from error

    def samples(self) -> Iterator[Experiment]:
        """What mode search may play, each of its values by itself."""
        alone = self.meta.model_copy(update={"games": ()})  # which are for mode benchmark
        for changes in samples(self.search) if self.search else ():
            named = ", ".join(f"{dash(flag)} {value}" for flag, value in changes.items())
            flags = {**self.flags, **changes}
            yield replace(self, name=f"{self.name} with {named}", flags=flags, meta=alone)


def read_experiments(path: Path) -> dict[str, Experiment]:
    """All experiments of a spec file by name.

    Raises UserError: file, experiment, key and what is allowed, in one sentence.
    """
    experiments = {}
    for name, found in tried_experiments(path).items():
        if isinstance(found, UserError):
            raise found
        experiments[name] = found
    return experiments


def tried_experiments(path: Path) -> dict[str, Experiment | UserError]:
    """All experiments of a spec file by name, or what is wrong with each.

    Raises UserError where the file as a whole cannot be read.
    """
    document = read_mapping(path)
    if not read_text(path).startswith("# "):
        raise UserError(f"{path}: the first line must be a comment that names the paper and the deviations.")
    if "experiments" not in document:
        return {path.stem: _tried(path, path.stem, document, {})}
    named = document.pop("experiments")
    if not isinstance(named, dict) or not named:
        raise UserError(f"{path}: experiments must be a mapping of names to flags.")
    return {name: _tried(path, name, body, document) for name, body in named.items()}


def _tried(path: Path, name: str, body: Any, common: Mapping[str, Any]) -> Experiment | UserError:
    try:
        return _experiment(path, name, body, common)
    except UserError as error:
        return error


def find_experiment(path: Path, name: str) -> Experiment:
    """The experiment of that name. Raises UserError listing the names there are."""
    experiments = read_experiments(path)
    if name not in experiments:
        raise UserError(f"{path} holds no experiment {name}: choose one of {', '.join(experiments)}.")
    return experiments[name]


def _experiment(path: Path, name: str, body: Any, common: Mapping[str, Any]) -> Experiment:
    where = f"{path}, experiment {name}"
    if wrong := name_fault(name):
        raise UserError(f"{where}: {wrong}")
    if not isinstance(body, dict):
        raise UserError(f"{where}: it must hold `name: value` lines.")
    meta, search = (
        {**dashed(common, block, kind, where), **dashed(body, block, kind, where)}
        for block, kind in (("meta", Meta), ("search", Search))
    )
    flags, written = _flags(path, {**common, **body}, where)
    experiment = Experiment(path, name, flags, checked(Meta, meta, "meta", where), written=written)
    for game in experiment.meta.games or [None]:
        experiment.args(**({"game": game} if game else {}))
    if "search" not in {**common, **body}:
        return experiment
    return replace(experiment, search=search_of(search, experiment.args, experiment.meta.sessions, where))


def _flags(path: Path, lines: Mapping[str, Any], where: str) -> SpecFlags:
    """The flags of an experiment's lines, over those of the spec that it begins from. Raises UserError."""
    own = {key: value for key, value in lines.items() if key not in BLOCKS}
    base = own.pop("spec", None)
    if not isinstance(base, str | None):
        raise UserError(f"{where}: spec got {base!r}: it should be the path of one file of flags.")
    try:
        known = args_type(own.get("agent") or agent_of_spec(base and path.parent / base)).model_fields
        begun = read_spec(path.parent / base, known) if base is not None else SpecFlags({}, {})
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    added = spec_flags(own, f"{where}:", known)
    flags, written = {**begun.flags, **added.flags}, {**begun.written, **added.written}
    taken = [flag for flag in RESERVED_FLAGS if flag in flags]
    if taken:
        raise UserError(f"{where}: {written[taken[0]]} is set by the lab; remove it.")
    return SpecFlags(flags, written)
