"""The tracker that --track asks for."""

from __future__ import annotations

from pathlib import Path

from args import Args
from reporting.trackers import Tracking, open_tracker


def tracking_of(args: Args) -> Tracking | None:
    """None where no tracker is asked for. Raises TrackerError."""
    if not args.track:
        return None
    settings = {name: value for name, value in args.model_dump().items() if not _is_secret(name)}
    return open_tracker(args.track, args.file_name, Path(args.path_to_results), settings)


def _is_secret(name: str) -> bool:
    """Whether it says where the server is, or how to log in there."""
    return "redis" in name or "password" in name
