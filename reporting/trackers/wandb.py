"""Weights & Biases. `WANDB_MODE=offline` keeps all in the results folder; `wandb sync` sends it later."""

from collections.abc import Mapping
from pathlib import Path

import wandb

from reporting.trackers import PROJECT, Start


class Tracker:
    """One run of wandb's."""

    def __init__(self, start: Start) -> None:
        self._run = wandb.init(
            project=PROJECT,
            name=start.name,
            id=start.key,
            resume="allow",
            config=dict(start.settings),
            dir=str(start.folder),
        )

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """All of one step."""
        self._run.log(dict(values), step=step)

    def film(self, path: Path) -> None:
        """At the newest step."""
        self._run.log({path.stem: wandb.Video(str(path), format="mp4")})

    def close(self) -> None:
        """Wait until wandb has sent it all."""
        self._run.finish()
