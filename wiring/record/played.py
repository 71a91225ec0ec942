"""What an evaluation has played: where its result goes and for how long, and who else is sent its film."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from args import Args
from envs.config import EnvConfig
from evaluation.result import set_aside
from reporting.pages.players import matches_of
from wiring.record.tracking import tracking_of


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
