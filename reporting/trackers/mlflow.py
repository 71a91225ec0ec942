"""MLflow. Without `MLFLOW_TRACKING_URI` its files are in the folder mlflow of the results."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient

from reporting.trackers import PROJECT, Start

KEY = "rainbow_iqn_apex.run"
"""The tag by which a run is found when it goes on."""
AT_ONCE = 100
"""Most parameters of one call, MLflow's limit."""


class Tracker:
    """One run of MLflow's."""

    def __init__(self, start: Start) -> None:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # as MLflow 3 asks whoever keeps files
        place = os.environ.get("MLFLOW_TRACKING_URI") or (start.folder / "mlflow").resolve().as_uri()
        self._client = MlflowClient(place)
        experiment = self._client.get_experiment_by_name(PROJECT)
        within = experiment.experiment_id if experiment else self._client.create_experiment(PROJECT)
        known = self._client.search_runs([within], f"tags.`{KEY}` = '{start.key}'")
        if known:
            self._run = known[0].info.run_id
            return
        self._run = self._client.create_run(within, run_name=start.name, tags={KEY: start.key}).info.run_id
        parameters = [Param(name, str(value)) for name, value in start.settings.items()]
        for first in range(0, len(parameters), AT_ONCE):
            self._client.log_batch(self._run, params=parameters[first : first + AT_ONCE])

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """All of one step."""
        now = int(1000 * time.time())
        self._client.log_batch(self._run, [Metric(name, value, now, step) for name, value in values.items()])

    def film(self, path: Path) -> None:
        """Among the run's artifacts."""
        self._client.log_artifact(self._run, str(path), "films")

    def close(self) -> None:
        """Mark it as finished."""
        self._client.set_terminated(self._run)
