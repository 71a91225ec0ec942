"""Spec files: which experiments they hold, checked before anything starts.

A file holds one experiment, called as the file: flags by name, and perhaps `meta`. Or it holds several below
`experiments`, each of that kind under its name; what stands beside `experiments` is for all of them. There
`spec` names a file of flags to begin from, as seen from the file that names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from args import BLOCKS, Args, Plain, UserError, checked_args, read_mapping, read_spec, spec_flags
from lab.blocks import Block, checked, dashed
from lab.search.block import Search, search_of

OURS = ("run", "path_to_results", "id_actor", "model")
"""Flags that the lab gives to each session itself."""


class Meta(Block):
    """How an experiment is repeated."""

    sessions: int = Field(1, ge=1, le=1000)  # runs of a trial, with seeds --seed, --seed + 1, ...
    budget_minutes: float | None = Field(None, gt=0)  # after which a session is stopped and counts as it is
    extra: bool = False  # left out of a benchmark unless it is named or --all is given
    games: tuple[str, ...] = ()  # that mode benchmark plays, in place of --game


@dataclass(frozen=True)
class Experiment:
    """One experiment of a spec file, checked."""

    file: Path
    name: str
    flags: Mapping[str, Plain]  # those that the spec names
    meta: Meta
    search: Search | None = None  # what mode search varies

    @property
    def where(self) -> str:
        """How a sentence about it begins."""
        return f"{self.file}, experiment {self.name}"

    def args(self, **changes: Plain) -> Args:
        """Its parameters with `changes`. Raises UserError."""
        try:
            return checked_args({**self.flags, **changes})
        except UserError as error:
            raise UserError(f"{self.where}: {error}") from error


def read_experiments(path: Path) -> dict[str, Experiment]:
    """All experiments of a spec file by name.

    Raises UserError: file, experiment, key and what is allowed, in one sentence.
    """
    document = read_mapping(path)
    if not path.read_text(encoding="utf-8").startswith("# "):
        raise UserError(f"{path}: the first line must be a comment that names the paper and the deviations.")
    if "experiments" not in document:
        return {path.stem: _experiment(path, path.stem, document)}
    named = document.pop("experiments")
    if not isinstance(named, dict) or not named:
        raise UserError(f"{path}: experiments must be a mapping of names to flags.")
    return {str(name): _experiment(path, str(name), body, document) for name, body in named.items()}


def find_experiment(path: Path, name: str) -> Experiment:
    """The experiment of that name. Raises UserError listing the names there are."""
    experiments = read_experiments(path)
    if name not in experiments:
        raise UserError(f"{path} holds no experiment {name}: choose one of {', '.join(experiments)}.")
    return experiments[name]


def _experiment(path: Path, name: str, body: Any, common: Mapping[str, Any] | None = None) -> Experiment:
    where = f"{path}, experiment {name}"
    if not re.fullmatch(r"[\w.-]+", name):
        raise UserError(f"{where}: a folder will be called so; use letters, digits, '_', '.' and '-' only.")
    if not isinstance(body, dict):
        raise UserError(f"{where}: it must hold `name: value` lines.")
    meta, search = (
        {**dashed(common, block, kind, where), **dashed(body, block, kind, where)}
        for block, kind in (("meta", Meta), ("search", Search))
    )
    own = {str(key): value for key, value in {**(common or {}), **body}.items() if key not in BLOCKS}
    base = own.pop("spec", None)
    flags = {**(read_spec(path.parent / str(base)) if base else {}), **spec_flags(own, f"{where}:")}
    taken = [flag for flag in OURS if flag in flags]
    if taken:
        raise UserError(f"{where}: {taken[0].replace('_', '-')} is the lab's own to give; leave it out.")
    experiment = Experiment(path, name, flags, checked(Meta, meta, "meta", where))
    for game in experiment.meta.games or [None]:
        experiment.args(**({"game": game} if game else {}))
    return replace(experiment, search=search_of(search, experiment.args, experiment.meta.sessions, where))
