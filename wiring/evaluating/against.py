"""Plays the matches that --against asks for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from args import Args, UserError
from envs.config import EnvConfig
from evaluation.matches.film import MatchFilm
from evaluation.matches.play import games_bar, play_matches
from evaluation.matches.ratings import Rated, ratings_text, write_ratings
from evaluation.matches.result import Matches, matches_text, write_matches
from evaluation.policies import Policy, is_baseline
from evaluation.result import file_digest
from wiring.evaluating.candidates import Candidate, Opponent, evaluated_name, opponents_of
from wiring.record.page import renew_page
from wiring.record.played import keep_earlier_result, send_film


class PlayedMatch(NamedTuple):
    """An opponent, and the games against it."""

    opponent: Opponent
    matches: Matches


def check_flags(args: Args) -> None:
    """Raise UserError where others do not go with --against, or with --ratings."""
    if args.ratings and args.against != "pool":
        raise UserError("--ratings is of a snapshot and its past selves: give --against pool too.")
    if args.against and args.render:
        raise UserError("--against shows nothing in a window: --record game.mp4 films its first game.")


def play_against(args: Args, candidate: Candidate, folder: Path) -> None:
    """Against random, another snapshot or the pool; print the table, write matches_<game>.json of each."""
    config = candidate.args.select(EnvConfig)
    opponents = opponents_of(args, candidate, config)
    if args.ratings:
        _rate(args, candidate, folder, [_play(args, candidate, folder, each) for each in opponents])
    else:
        for opponent in opponents:
            _play(args, candidate, folder, opponent)
    page = renew_page(args.model, candidate.args, folder)
    if page is not None:
        print(f"{page} shows all matches of this run.")


def _play(args: Args, candidate: Candidate, folder: Path, opponent: Opponent) -> PlayedMatch:
    config, ending = candidate.args.select(EnvConfig), _ending(args, opponent)
    film = _film(args, candidate, opponent, ending)
    matches = _games(args, config, candidate.policy, opponent.policy, film)
    print(matches_text(matches, config.game, opponent.name))
    path = folder / f"matches_{evaluated_name(candidate.args)}{ending}.json"
    origin = _origin(args, candidate, opponent.name)
    keep_earlier_result(path, config, origin)
    write_matches(path, matches, config, origin)
    print(f"Saved {path}.")
    if film is not None:
        film.write()
        print(f"The first game is in {film.path}.")
        send_film(candidate.args.model_copy(update={"track": args.track}), film.path)
    return PlayedMatch(opponent, matches)


def _games(
    args: Args, config: EnvConfig, ours: Policy, theirs: Policy, film: MatchFilm | None = None
) -> Matches:
    games = args.evaluation_episodes
    with games_bar(games) as on_progress:
        settings = games, args.seed, args.opening_plies, args.evaluation_envs
        return play_matches(ours, theirs, config, *settings, on_progress, film)


def _ending(args: Args, opponent: Opponent) -> str:
    """What the names of a match's files end with: a pool has several matches."""
    return f"_{opponent.updates}" if args.against == "pool" else ""


def _film(args: Args, candidate: Candidate, opponent: Opponent, ending: str) -> MatchFilm | None:
    """A film of the first game, in which the candidate has the first seat."""
    if not args.record:
        return None
    path = Path(args.record)
    sides = candidate.name, Path(opponent.name).name
    return MatchFilm(path.with_stem(path.stem + ending), candidate.args.select(EnvConfig), sides)


def _origin(args: Args, candidate: Candidate, opponent: str) -> dict[str, object]:
    origin = {**candidate.origin, "against": opponent, "opening_plies": args.opening_plies}
    if args.against and args.against != "pool" and not is_baseline(args.against):
        origin["against_sha256"] = file_digest(Path(args.against))
    return origin


def _rate(args: Args, candidate: Candidate, folder: Path, played: Sequence[PlayedMatch]) -> None:
    """Play the pairs of the pool too; print and write the ratings of all, the snapshot last."""
    config, count = candidate.args.select(EnvConfig), len(played)
    members = [each.opponent for each in played]
    pairs = {(count, number): each.matches for number, each in enumerate(played)}
    games = args.evaluation_episodes * count * (count - 1) // 2
    print(f"For the ratings the members of the pool play each other: {games:,} games.")
    for one, other in combinations(range(count), 2):
        pairs[one, other] = _games(args, config, members[one].policy, members[other].policy)
    players = [Rated(each.name, each.updates) for each in members]
    players.append(Rated(candidate.name, candidate.origin["updates"]))
    print(ratings_text(players, pairs, config.game))
    path = folder / f"matches_{evaluated_name(candidate.args)}_pool.json"
    origin = {**_origin(args, candidate, "pool"), "members": [each.updates for each in members]}
    keep_earlier_result(path, config, origin)
    write_ratings(path, players, pairs, config, origin)
    print(f"Saved {path}.")
