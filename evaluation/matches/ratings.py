"""Ratings of several players on one scale of Elo, from the games of all pairs.

The model is Bradley and Terry's: i beats j with probability s_i / (s_i + s_j), and Elo is 400 log10 s. A draw
counts as half a win of each. The strengths are those of maximum likelihood, by the iteration of Newman 2023
(JMLR 24:238), which has the fixed point of Hunter's (2004, Annals of Statistics 32) and comes to it sooner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from envs.config import EnvConfig
from envs.registry import canonical_game
from evaluation.matches.result import INTERVAL, Matches, Tally
from reporting.atomic import write_json
from reporting.measures.aggregates import Floats

PRIOR = 1.0
"""Drawn games that are added for each player, in equal parts against all others, as BayesElo adds some: a
player who has won all games has a finite rating then.
"""
METHOD = (
    "Bradley-Terry, maximum likelihood; a draw is half a win of each; one drawn game of each player against"
    " the others together is added; intervals of 95 % from the curvature of the likelihood; the first player"
    " is 0"
)
ELO = 400 / math.log(10)
"""Elo points that stand for a strength larger by the factor e."""
TOLERANCE, MOST_SWEEPS = 1e-10, 10_000
"""Sweeps end once no logarithm of a strength changes by TOLERANCE, or after MOST_SWEEPS of them."""


class Rating(NamedTuple):
    """Elo points above the first player, and their 95 % interval."""

    elo: float
    low: float
    high: float


class Rated(NamedTuple):
    """Who was rated."""

    name: str
    updates: object  # of the learner, when it was saved


Pairs = Mapping[tuple[int, int], Matches]
"""Numbers of two players -> their games, with the results of the first of the two."""


def ratings(points: Floats, prior: float = PRIOR) -> list[Rating]:
    """The ratings of all players; the first one's is 0, without an interval.

    The intervals are of a normal distribution with the covariance that the Fisher information gives. Draws
    count as games won or lost by the toss of a coin there, which makes the intervals rather too wide.

    Args:
        points: [P, P], of the row's player in the games against the column's: a win is 1, a draw a half.
        prior: games of each player that are drawn besides.
    """
    points = points + prior / 2 / (len(points) - 1) * (1 - np.eye(len(points)))
    strength = strengths(points)
    elo = ELO * np.log(strength / strength[0])
    half = INTERVAL * ELO * _standard_errors(points, strength)
    return [Rating(*row) for row in np.stack([elo, elo - half, elo + half], axis=1).tolist()]


def strengths(points: Floats) -> Floats:
    """[P] of largest likelihood, for `points` [P, P] as in `ratings`; their logarithms sum to 0.

    Finite where every group of players has won something from the others, as any prior takes care of.
    """
    strength = np.ones(len(points))
    for _ in range(MOST_SWEEPS):
        before = strength.copy()
        for player in range(len(points)):
            share = 1 / (strength[player] + strength)
            lost = (points[:, player] * share).sum()
            strength[player] = (points[player] * strength * share).sum() / lost
        strength /= np.exp(np.log(strength).mean())
        if np.abs(np.log(strength / before)).max() < TOLERANCE:
            break
    return strength


def _standard_errors(points: Floats, strength: Floats) -> Floats:
    """[P] of log(strength / the first one's)."""
    wins = strength[:, None] / (strength[:, None] + strength)
    information = (points + points.T) * wins * wins.T  # wins.T is the chance of the column's player
    curvature = np.diag(information.sum(1)) - information
    errors: Floats = np.sqrt(np.append(0.0, np.diag(np.linalg.inv(curvature[1:, 1:]))))
    return errors


def points_of(pairs: Pairs, players: int) -> Floats:
    """[P, P] as in `ratings`."""
    points = np.zeros((players, players))
    for (one, other), matches in pairs.items():
        record = matches.record()
        points[one, other] += record.wins + record.draws / 2
        points[other, one] += record.losses + record.draws / 2
    return points


def ratings_text(players: Sequence[Rated], pairs: Pairs, game: str) -> str:
    """A small table for a terminal, the last player first."""
    games = sum(matches.record().games for matches in pairs.values())
    lines = [
        f"{game}: ratings of {len(players)} players from {games:,} games of {len(pairs)}"
        f" pair{'' if len(pairs) == 1 else 's'}",
        f"{'':<22}{'Elo':>8}{'95 %':>20}{'games':>9}{'score':>9}",
    ]
    for player, rating, record in reversed(_rows(players, pairs)):
        interval = f"{rating.low:+.0f} to {rating.high:+.0f}"
        lines.append(
            f"{player.name:<22}{rating.elo:>+8.0f}{interval:>20}{record.games:>9,}{record.score:>9.1%}"
        )
    return "\n".join(lines)


def write_ratings(
    path: Path, players: Sequence[Rated], pairs: Pairs, config: EnvConfig, settings: Mapping[str, object]
) -> None:
    """Write `matches_<game>_pool.json`, whole or not at all."""
    rated = []
    for player, rating, record in _rows(players, pairs):
        elo = {"elo": rating.elo, "interval": [rating.low, rating.high]}
        rated.append({**player._asdict(), **elo, "games": record.games, "score": record.score})
    document = {
        "game": canonical_game(config.game),
        "players": rated,
        "pairs": [
            {"players": pair, **matches.record()._asdict(), "results": matches.results.tolist()}
            for pair, matches in pairs.items()
        ],
        "method": METHOD,
        "settings": {**settings, **asdict(config)},
    }
    write_json(path, document)


def _rows(players: Sequence[Rated], pairs: Pairs) -> list[tuple[Rated, Rating, Tally]]:
    """Each with its rating, and the record of all its games."""
    found = ratings(points_of(pairs, len(players)))
    records = [_record_of(number, pairs) for number in range(len(players))]
    return list(zip(players, found, records, strict=True))


def _record_of(player: int, pairs: Pairs) -> Tally:
    own = [matches.record() for (one, _), matches in pairs.items() if one == player]
    others = [matches.record() for (_, other), matches in pairs.items() if other == player]
    own += [Tally(each.losses, each.draws, each.wins) for each in others]
    return Tally(*map(sum, zip(*own, strict=True)))
