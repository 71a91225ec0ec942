"""The command report: evaluations of many games and seeds on one page, with tables and a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from args import UserError
from lab.files import ENJOYED, read_model
from lab.report_csv import Finite, runs_of_csv, unread_columns
from parameters.declare import flag_of
from reporting.measures.aggregates import probability_of_improvement
from reporting.measures.fitness import nearest_standard, references
from reporting.measures.saber import WHOLE, Reference, Run, agents_of, by_game, counted, left_out, shown
from reporting.pages.saber_page import write_report

_SCORE = Reference("score", lambda _game, score: score)
"""The raw score as its own reference: to say which of two runs is better needs no more."""
_PROTOCOL = (
    "action_repeat", "proba_sticky_actions", "disable_saber_mode", "max_stuck_time", "max_episode_steps",
    "minimal_actions", "noop_max", "env_args", "eval_noise", "evaluation_epsilon",
)  # fmt: skip
"""Settings of an evaluation: scores that differ in one have no mean."""


class _Mean(BaseModel):
    mean: Finite


class _Settings(BaseModel, extra="allow"):
    agent: str = ""
    proba_sticky_actions: float | None = None
    model_sha256: str | None = None  # of the snapshot; None in files of earlier versions, and of baselines


class _Evaluation(BaseModel):
    """What a report reads of `evaluation_<game>.json` (evaluation.result)."""

    game: str
    score_5min: _Mean
    score_30min: _Mean
    score_saber: _Mean
    settings: _Settings = _Settings()


def read_runs(paths: Sequence[Path], name_of: Callable[[str], str] = str) -> list[Run]:
    """The runs in folders of evaluations, however deep, and in csv files; `name_of`: a csv game's one name.

    Raises UserError where one holds none or counts twice, or scores of an agent do not go together.
    """
    files = [file for path in paths for file in _files(path)]
    if twice := [file for file in files if files.count(file) > 1]:
        raise UserError(f"{twice[0]} would count twice: name it, or a folder that it lies in, once.")
    runs = []
    for path in paths:
        found = _of_folder(path) if path.is_dir() else runs_of_csv(path, name_of)
        if not found:
            raise UserError(
                f"{path} holds no score: name a csv, or a folder of evaluations by test_multiple_seed.py."
            )
        runs += _named(found, path, paths)
    return runs


def _files(path: Path) -> list[Path]:
    """The files that hold scores."""
    return _evaluations(path.resolve()) if path.is_dir() else [path.resolve()]


def _evaluations(folder: Path, prefix: str = "") -> list[Path]:
    """The files of evaluations below a folder, without those of mode enjoy."""
    found = folder.rglob(f"{prefix}evaluation_*.json")
    return sorted(path for path in found if path.parent.name != ENJOYED)


def _named(found: Sequence[Run], path: Path, paths: Sequence[Path]) -> list[Run]:
    """The runs, named by their folder or csv, or by their agents where it has several."""
    is_alone = sum(_name(path) == _name(other) for other in paths) == 1
    called = _name(path) if is_alone else path.as_posix()
    if len(agents_of(found)) == 1:
        return [run._replace(agent=called) for run in found]
    before = f"{called}/" if len(paths) > 1 else ""
    return [run._replace(agent=before + run.agent) for run in found]


def _name(path: Path) -> str:
    """The name of a folder or csv, without its path."""
    return path.resolve().name if path.is_dir() else path.stem


def _of_folder(folder: Path) -> list[Run]:
    read = {path: read_model(path, _Evaluation, "evaluation") for path in _files(folder)}
    _check_protocols(folder, [*read.values()])
    _check_snapshots(read)
    runs = []
    for each in read.values():
        scores = each.score_5min.mean, each.score_30min.mean, each.score_saber.mean
        runs.append(Run(each.settings.agent, each.game, scores, each.settings.proba_sticky_actions))
    return runs


def _check_snapshots(read: Mapping[Path, _Evaluation]) -> None:
    """Raise UserError where a snapshot played a game twice: it is one run all the same."""
    first: dict[tuple[str, str], Path] = {}
    for path, each in read.items():
        if snapshot := each.settings.model_sha256:
            other = first.setdefault((each.game, snapshot), path)
            if other != path:
                raise UserError(
                    f"{other} and {path} are of the same snapshot, which would count as two runs: name a"
                    " folder that holds one of them."
                )


def _check_protocols(folder: Path, read: Sequence[_Evaluation]) -> None:
    """Raise UserError where an agent played a game, or those of ALE, by several protocols."""
    groups: dict[tuple[str, str], list[dict[str, object]]] = {}
    for each in read:
        what = each.game if references(each.game)[0] is None else "ALE's games"
        groups.setdefault((each.settings.agent, what), []).append(each.settings.model_dump(exclude_none=True))
    for (agent, what), group in groups.items():
        values = {name: {str(each[name]) for each in group if name in each} for name in _PROTOCOL}
        several = {name: found for name, found in values.items() if len(found) > 1}
        odd = [f"{flag_of(name)} ({', '.join(sorted(found))})" for name, found in several.items()]
        if odd:
            raise UserError(
                f"{folder}: the evaluations of {agent} on {what} differ in {', '.join(odd)}, so that they"
                " have no mean: name a folder for each protocol."
            )


def compare(runs: Sequence[Run], ours: str, theirs: str) -> str:
    """The probability that `ours` improves on `theirs`, over the games of both. Raises UserError."""
    known = agents_of(runs)
    if ours == theirs:
        raise UserError(f"--compare {ours} {theirs}: name two agents.")
    for name in (ours, theirs):
        if name not in known:
            raise UserError(f"--compare {name}: choose among {', '.join(known)}.")
    groups = [by_game(runs, name, WHOLE, _SCORE) for name in (ours, theirs)]
    common = sorted(groups[0].keys() & groups[1].keys())
    if not common:
        raise UserError(f"--compare {ours} {theirs}: they have no game in common.")
    first, second = ([group[game] for game in common] for group in groups)
    probability = shown(probability_of_improvement(first, second))
    return f"P({ours} > {theirs}) = {probability}, over {counted(len(common), 'game')} of both"


def make_report(
    paths: Sequence[Path],
    folder: Path,
    pair: Sequence[str],
    say: Callable[[str], None],
    name_of: Callable[[str], str],
) -> None:
    """Write the report of what is there, and print its summary. Raises UserError."""
    runs = read_runs(paths, name_of)
    remarks = [*_left_out(paths), *_unread(paths), *_remarks(runs, pair)]
    try:
        lines = write_report(runs, folder, remarks)
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"Nothing can be written to {folder} ({why}): check --results.") from error
    for line in (*lines, *remarks):
        say(line)
    say(f"Written to {folder}: report.html, report.png, report.csv, games.csv.")


def _left_out(paths: Sequence[Path]) -> list[str]:
    """A sentence on the results whose names a later evaluation took (evaluation.result.keep_earlier)."""
    found = [str(each) for path in paths for each in _evaluations(path, "earlier_")]
    return [f"Left out, as a later evaluation took their place: {', '.join(found)}."] if found else []


def _unread(paths: Sequence[Path]) -> list[str]:
    """A sentence on the columns of each csv that nothing was made of."""
    found = {path: unread_columns(path) for path in paths if not path.is_dir()}
    return [
        f"{path}: columns that are not read: {', '.join(names)}." for path, names in found.items() if names
    ]


def _remarks(runs: Sequence[Run], pair: Sequence[str]) -> list[str]:
    """What a reader of the aggregates should know besides."""
    found = []
    if missing := left_out(runs):
        found.append(
            f"In no aggregate, as no reference is known: {', '.join(map(_beside_nearest, missing))}."
        )
    if len({frozenset(run.game for run in runs if run.agent == agent) for agent in agents_of(runs)}) > 1:
        found.append("These agents played different games: their aggregates are not comparable.")
    return [*found, compare(runs, *pair)] if pair else found


def _beside_nearest(game: str) -> str:
    """A game without a reference, and the one that it may be a misspelling of."""
    near = nearest_standard(game)
    return f"{game} ({near} has one)" if near else game
