"""Trackio. It keeps everything on this machine (`TRACKIO_DIR` says where), and `trackio show` draws it."""

from collections.abc import Mapping
from pathlib import Path

import trackio

from reporting.trackers import PROJECT, Start


class Tracker:
    """One run of Trackio's."""

    def __init__(self, start: Start) -> None:
        name = f"{start.name}-{start.key[:8]}"
        settings = {key: value for key, value in start.settings.items() if not key.startswith("_")}
        self._run = trackio.init(project=PROJECT, name=name, config=settings, resume="allow", embed=False)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """All of one step."""
        self._run.log(dict(values), step=step)

    def film(self, path: Path) -> None:
        """At the newest step."""
        self._run.log({path.stem: trackio.Video(str(path), format="mp4")})

    def close(self) -> None:
        """Write what is left."""
        self._run.finish()
