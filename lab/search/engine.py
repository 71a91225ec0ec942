"""The trials of a search on Ray Tune: it places them, ASHA stops some early, Optuna proposes.

What Tune would keep for a restart is thrown away: `trial.json` and the sessions' own folders are the record.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import ray
from ray import tune

from args import UserError
from lab.house import PATIENCE_S
from lab.search.block import Search
from lab.search.ledger import Ledger
from lab.search.proposals import Proposals
from lab.search.schedulers import scheduler_for
from lab.search.worker import STEPS, Job, TuneTrial
from supervision.process import Stop

OBJECT_STORE_BYTES = 80 * 2**20
"""Nothing but parameters and scores passes through it; Ray's least is 75 MiB."""


@contextlib.contextmanager
def cluster(address: str | None, stop: Stop) -> Iterator[None]:
    """Ray at `address`, or one on this machine alone that ends with the block. Raises UserError."""
    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as place:
        own = {
            "address": "local",
            "num_cpus": len(os.sched_getaffinity(0)),
            "object_store_memory": OBJECT_STORE_BYTES,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": place,
        }
        try:
            ray.init(**({"address": address} if address else own), **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise UserError(f"There is no Ray at {address or 'this machine'}: {reason}") from error
        stop.on_signals()  # Ray took SIGTERM
        try:
            yield
        finally:
            ray.shutdown()


def check_room(search: Search, where: str) -> None:
    """Raises UserError where no machine could ever run a trial."""
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(m.get("CPU", 0) >= search.cpus and m.get("GPU", 0) >= search.gpus for m in machines):
        room = " / ".join(f"{m.get('CPU', 0):g} CPUs and {m.get('GPU', 0):g} GPUs" for m in machines)
        asked = f"search.cpus {search.cpus} with search.gpus {search.gpus:g}"
        raise UserError(f"{where}: {asked} is more than any machine has: {room}.")


def run_trials(job: Job, search: Search, numbers: Sequence[int], ledger: Ledger, stop: Stop) -> None:
    """Play these trials to their ends, or until a stop is asked for; the ledger says what came of them."""
    resources = {"cpu": search.cpus, "gpu": search.gpus}
    with tempfile.TemporaryDirectory(prefix="tune-", ignore_cleanup_errors=True) as place:
        tune.Tuner(
            tune.with_resources(tune.with_parameters(TuneTrial, job=job), resources),
            tune_config=tune.TuneConfig(
                search_alg=Proposals(search, numbers, ledger.records),
                scheduler=scheduler_for(search, job.total, ledger.done),
                num_samples=len(numbers),
                max_concurrent_trials=search.concurrent,
            ),
            run_config=tune.RunConfig(
                name="search",
                storage_path=place,
                stop=UntilAsked(stop, job, ledger),
                callbacks=[Notes(ledger, job, search)],
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                verbose=0,
            ),
        ).fit()
    ledger.end_all("stopped")
    job.stopping.unlink(missing_ok=True)


class NotSaved:
    """Tune pickles what it is given, for a restart that the lab does without."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return object, ()


class UntilAsked(NotSaved, tune.Stopper):
    """Ends the search when the user does: trials see a file and save, then Tune ends."""

    def __init__(self, stop: Stop, job: Job, ledger: Ledger) -> None:
        self._stop, self._job, self._ledger = stop, job, ledger
        self._deadline = math.inf
        job.stopping.unlink(missing_ok=True)

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Of one trial: never."""
        return False

    def stop_all(self) -> bool:
        """Whether a stop was asked for, and no trial runs any more or PATIENCE_S are over."""
        if not self._stop():
            return False
        if self._deadline == math.inf:
            self._deadline = time.monotonic() + PATIENCE_S
            self._job.stopping.touch()
        return not self._ledger.running or time.monotonic() > self._deadline


class Notes(NotSaved, tune.Callback):
    """What happens to trials, for the ledger."""

    def __init__(self, ledger: Ledger, job: Job, search: Search) -> None:
        self._ledger = ledger
        self._most = (search.asha.max_steps if search.asha else None) or job.total

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Its process is being started."""
        self._ledger.begin(trial.config["number"], trial.config["parameters"])

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """A report."""
        if result.get("stopped"):
            return
        told = (result[name] for name in (STEPS, "measures", "minutes", "commit", "node"))
        self._ledger.report(trial.config["number"], *told)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """At its end, stopped by ASHA, or with the search."""
        last = trial.last_result
        finished = last.get("over") or last.get(STEPS, 0) >= self._most
        early = "stopped" if last.get("stopped") else "stopped early"
        self._ledger.end(trial.config["number"], "finished" if finished else early)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A session failed, or the process was lost."""
        self._ledger.fail(trial.config["number"])
