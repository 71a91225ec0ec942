"""Where the result of an evaluation goes, and the tracker that is sent a run's scalars and films."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from args import Args
from envs.config import EnvConfig
from evaluation.result import set_aside
from reporting.pages.players import matches_of
from reporting.trackers import Tracking, open_tracker


def make_way(path: Path, config: EnvConfig, origin: dict[str, object]) -> None:
    """For a result of this origin; one that was played otherwise stays, under a name that is printed."""
    earlier = set_aside(path, {**origin, **asdict(config)})
    if earlier is not None:
        print(f"{path} held another result, which is {earlier} now.")


def set_matches_aside(folder: Path, games: Sequence[str]) -> None:
    """Those of an earlier run of these games: a new run's page is not to show them."""
    for path, _ in matches_of(folder, games):
        set_aside(path, {})


def send_film(args: Args, film: Path) -> None:
    """To the tracker that --track names, beside what the learner sent there."""
    tracking = tracking_of(args)
    if tracking is None:
        return
    if film.suffix == ".mp4":
        tracking.film(film)
    tracking.close()


def tracking_of(args: Args) -> Tracking | None:
    """None where no tracker is asked for. Raises TrackerError."""
    if not args.track:
        return None
    settings = {name: value for name, value in args.model_dump().items() if not _is_secret(name)}
    return open_tracker(args.track, args.file_name, Path(args.path_to_results), settings)


def _is_secret(name: str) -> bool:
    """Whether it says where the server is, or how to log in there."""
    return "redis" in name or "password" in name
