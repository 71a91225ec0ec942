"""The result of an evaluation: every episode, and statistics of their scores."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envs.config import EnvConfig
from envs.registry import canonical_game, family_name
from reporting.atomic import write_json
from reporting.measures.fitness import normalised

Settings = dict[str, Any]
REFERENCES = ("human", "world record")
FILES = ("model", "against")
"""Settings that name files; a file is known by what it holds, not by its path."""
COLUMNS = ("<14", ">12", ">12", ">12", ">10", ">14")
"""How the cells of a row are aligned."""


@dataclass(frozen=True)
class EvaluationSummary:
    """Statistics of the scores of all episodes at one time of play."""

    mean: float
    median: float
    standard_error: float | None  # of the mean; None for a single episode
    human_normalised: float | None  # of the mean: 0 random play, 1 a human; None where there is no reference
    world_record_normalised: float | None


@dataclass(frozen=True)
class Evaluation:
    """Episodes in the order of their seeds."""

    env_config: EnvConfig
    seeds: tuple[int, ...]  # of the environment, one per episode
    scores_5min: tuple[float, ...]  # raw scores within the first 5 minutes of play
    scores_30min: tuple[float, ...]
    scores: tuple[float, ...]  # of the whole episodes: SABER's
    lengths: tuple[int, ...]  # agent steps
    rooms: tuple[tuple[int, ...], ...]  # visited in each episode; empty where the game names none
    seats: int = 1  # of a game whose seats move at the same time: episode i is of seat i mod `seats`

    @property
    def summaries(self) -> dict[str, EvaluationSummary]:
        """Statistics by time of play."""
        columns = (self.scores_5min, self.scores_30min, self.scores)
        summaries = (_summary(self.env_config.game, scores, self.seats) for scores in columns)
        return dict(zip(("score_5min", "score_30min", "score_saber"), summaries, strict=True))

    @property
    def by_seat(self) -> list[EvaluationSummary]:
        """Statistics of each seat's whole episodes; none where a game has one alone."""
        seats = range(self.seats if self.seats > 1 else 0)
        return [_summary(self.env_config.game, self.scores[seat :: self.seats]) for seat in seats]

    @property
    def all_rooms(self) -> list[int]:
        """The rooms visited in any episode, in ascending order."""
        return sorted(set().union(*self.rooms))

    @property
    def median_episode(self) -> int:
        """Index of the episode with the median score: the lower of two, the first of equals."""
        return int(np.argsort(self.scores, kind="stable")[(len(self.scores) - 1) // 2])


def write_evaluation(path: Path, evaluation: Evaluation, settings: Mapping[str, object]) -> None:
    """Write `evaluation_<game>.json`, whole or not at all.

    Args:
        settings: what was evaluated and how (agent, snapshot and its T, noise); the environment's are added.
    """
    summaries = evaluation.summaries
    document = {
        "game": canonical_game(evaluation.env_config.game),
        "episodes": len(evaluation.scores),
        **asdict(summaries["score_saber"]),
        **{name: asdict(summary) for name, summary in summaries.items()},
        **({"by_seat": [*map(asdict, evaluation.by_seat)]} if evaluation.by_seat else {}),
        "scores": evaluation.scores,
        "scores_5min": evaluation.scores_5min,
        "scores_30min": evaluation.scores_30min,
        "lengths": evaluation.lengths,
        "seeds": evaluation.seeds,
        **({"rooms": evaluation.rooms, "all_rooms": evaluation.all_rooms} if evaluation.all_rooms else {}),
        "settings": {**settings, **asdict(evaluation.env_config)},
    }
    write_json(path, document)


def keep_earlier(path: Path, settings: Mapping[str, object]) -> Path | None:
    """Rename the result in `path` so that no report reads it, unless the same was evaluated in the same way.

    Args:
        settings: those of the result that `path` is to hold, its environment's too.

    Returns:
        The new name; None where nothing was there, or what the new result may replace.
    """
    if not path.exists() or _played_in(path) == _played(settings):
        return None
    others = (path.with_name(f"earlier_{path.stem}_{number}.json") for number in itertools.count(1))
    return path.rename(next(other for other in others if not other.exists()))


def file_digest(path: Path) -> str:
    """The SHA-256 of a snapshot, which identifies it whatever its path is called. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _played(settings: Mapping[str, object]) -> Settings:
    """What was played and how, as JSON has it."""
    opponent = settings.get("against_sha256") or settings.get("against")
    others = {name: value for name, value in settings.items() if name not in FILES}
    played: Settings = json.loads(json.dumps({**others, "opponent": opponent}, default=str))
    return played


def _played_in(path: Path) -> Settings | None:
    try:
        document = json.loads(path.read_bytes())
        episodes = {"evaluation_episodes": document.get("episodes")}  # earlier versions: not among settings
        return _played({**episodes, **document["settings"]})
    except (ValueError, LookupError, TypeError, AttributeError):
        return None  # not one of ours


def evaluation_text(evaluation: Evaluation) -> str:
    """The result as a small table for a terminal."""
    episodes, length = len(evaluation.scores), float(np.mean(evaluation.lengths))
    game = canonical_game(evaluation.env_config.game)
    lines = [f"{game}: {episodes} episodes, mean length {length:,.0f} steps"]
    is_atari = family_name(game) == "atari"  # elsewhere minutes mean nothing, and nobody has a human's score
    lines.append(_row("", "mean", "std. error", "median", *(REFERENCES if is_atari else ())))
    rows = [*zip(("5 minutes", "30 minutes", "whole episode"), evaluation.summaries.values(), strict=True)]
    for label, summary in rows if is_atari else rows[-1:]:
        scores = (summary.mean, summary.standard_error, summary.median)
        fractions = (summary.human_normalised, summary.world_record_normalised) if is_atari else ()
        cells = [*(_cell(each, ",.2f") for each in scores), *(_cell(each, ".2%") for each in fractions)]
        lines.append(_row(label, *cells))
    for seat, summary in enumerate(evaluation.by_seat):
        scores = (summary.mean, summary.standard_error, summary.median)
        lines.append(_row(f"seat {seat}", *(_cell(each, ",.2f") for each in scores)))
    if evaluation.all_rooms:
        lines.append(_rooms_text(evaluation))
    return "\n".join(lines)


def _rooms_text(evaluation: Evaluation) -> str:
    counts = [len(rooms) for rooms in evaluation.rooms]
    named = " ".join(map(str, evaluation.all_rooms))
    return f"rooms visited: {np.mean(counts):.2f} per episode, at most {max(counts)}; in all {named}"


def _row(*cells: str) -> str:
    return "".join(f"{cell:{form}}" for cell, form in zip(cells, COLUMNS, strict=False))


def _cell(number: float | None, form: str) -> str:
    return "–" if number is None else f"{number:{form}}"


def _summary(game: str, scores: Sequence[float], seats: int = 1) -> EvaluationSummary:
    """The seats of one game depend on each other: its standard error is that of games."""
    mean = float(np.mean(scores))
    fractions = normalised(canonical_game(game), mean)
    whole = len(scores) - len(scores) % seats
    games = np.reshape(scores[:whole], (-1, seats)).mean(axis=1)
    return EvaluationSummary(
        mean=mean,
        median=float(np.median(scores)),
        standard_error=float(np.std(games, ddof=1) / np.sqrt(len(games))) if len(games) > 1 else None,
        human_normalised=fractions.human,
        world_record_normalised=fractions.world_record,
    )
