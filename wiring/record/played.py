"""Where the result of an evaluation goes, and the tracker that is sent a run's scalars and films."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from args import Args
from envs.config import EnvConfig
from evaluation.result import keep_earlier
from reporting.pages.players import matches_of
from reporting.trackers import Tracking, open_tracker
from wiring.record.page import names_the_server


def keep_earlier_result(path: Path, config: EnvConfig, origin: dict[str, object]) -> None:
    """Rename what `path` holds and say so, unless it is a result of the same evaluation."""
    earlier = keep_earlier(path, {**origin, **asdict(config)})
    if earlier is not None:
        print(f"{path} held another result, which is {earlier} now.")


def set_matches_aside(folder: Path, games: Sequence[str]) -> None:
    """Rename the matches of an earlier run of these games: the page of a new run must not show them."""
    for path, _ in matches_of(folder, games):
        keep_earlier(path, {})


def send_film(args: Args, film: Path) -> None:
    """Send a film to the tracker that --track names, to the run that the learner's scalars are in."""
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
    settings = {name: value for name, value in args.model_dump().items() if not names_the_server(name)}
    return open_tracker(args.track, args.file_name, Path(args.path_to_results), settings)
