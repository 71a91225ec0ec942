"""A trial of a search in a process of Ray's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray import tune

from lab.search.play import Play
from lab.search.trial import Trial, trial_folder
from lab.spec import Experiment

STEPS, VALUE = "agent_steps", "value"
"""Of a report: the clock that ASHA goes by, and what is maximised."""


class Job(NamedTuple):
    """What all trials of a search have in common."""

    experiment: Experiment
    folder: Path  # of the search, seen alike from every machine
    place: Path  # the folder that paths in the spec are seen from
    metric: str
    total: int  # agent steps of a trial
    every: int  # agent steps between reports

    @property
    def stopping(self) -> Path:
        """A file that is there once the search is to stop: trials see it wherever they run."""
        return self.folder / "stopping"


class TuneTrial(tune.Trainable):
    """Tune's view of a trial. It has no checkpoints of Tune's: its sessions resume by themselves."""

    def setup(self, config: dict[str, Any], job: Job) -> None:
        """Begin, or go on."""
        os.chdir(job.place)
        number = config["number"]
        trial = Trial(job.experiment, number, config["parameters"], trial_folder(job.folder, number))
        self._job = job
        self._node = f"{os.uname().nodename} {ray.get_runtime_context().get_node_id()[:6]}"
        self._play = Play(trial.sessions(), job.every)

    def step(self) -> dict[str, Any]:
        """The next report; the last one when the search stops, once all is saved. Raises TrialFailed.

        Tune itself would give a trial 10 s to save before it kills it.
        """
        if self._job.stopping.exists():
            self._play.end()
            return {STEPS: 0, VALUE: float("nan"), "stopped": True, "done": True}
        told = self._play.next()
        value = told.measures.get(self._job.metric, float("nan"))
        return {STEPS: told.steps, VALUE: value, **told._asdict(), "node": self._node, "done": told.over}

    def cleanup(self) -> None:
        """Whoever stops the trial, nothing of it goes on running."""
        self._play.end()
