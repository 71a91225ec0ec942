"""A search as it runs: Optuna or a plan proposes, Ray places the trials' processes, ASHA stops some early.

Ray and Optuna are an extra that takes seconds to load: they are imported where they are needed.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock, Semaphore
from typing import Any

from args import Plain, UserError
from cluster.ray_session import ray_session
from lab.files import dash, of_another_spec, spec_bytes
from lab.folder import PATIENCE_S, end_sessions
from lab.search.ledger import Ledger
from lab.search.proposals import Proposals, is_stopped_early
from lab.search.space import Search
from lab.search.trial import Job, Progress, TrialPlayer
from lab.spec import Experiment
from parameters.spec_file import read_mapping
from reporting.atomic import write_atomically
from supervision.process import Stop

HOW = "`EXTRAS=search bash scripts/setup.sh`, or `pip install -r requirements/search.txt`"
FREE = ("trials", "concurrent", "cpus", "gpus")
"""Keys that may change from one start of a search to the next."""
REPORTS = 20
"""Reports of a trial, at equal numbers of agent steps; with ASHA there is one at each multiple of its grace
steps.
"""
POLL_EVERY_S = 0.5
"""Seconds between two looks at whether a stop was asked for, while a trial waits for a place (our choice)."""


def check_search(experiment: Experiment) -> None:
    """Raises UserError where mode search could not begin."""
    if experiment.search is None:
        raise UserError(f"{experiment.where}: mode search needs a block `search` (docs/lab.md).")
    wanted = ("ray", "optuna") if experiment.search.method == "optuna" else ("ray",)
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"{experiment.where}: mode search needs {missing[0]}, which is not installed: {HOW}.")


def seed_warning(experiment: Experiment) -> str:
    """A warning that ASHA would stop trials after a single seed; "" where it would not."""
    asha = experiment.search and experiment.search.asha
    args, sessions = experiment.args(), experiment.meta.sessions
    if not asha or sessions == 1 or asha.grace_steps > args.T_max:
        return ""
    return (
        f"{experiment.where}: ASHA would stop trials by seed {args.seed} alone, since their {sessions}"
        f" sessions run one after the other: set search.asha.grace-steps above T-max {args.T_max}, or play"
        " one session."
    )


def search(
    experiment: Experiment,
    root: Path,
    address: str | None,
    stop: Stop,
    say: Callable[[str], None],
    after_trial: Callable[[], object],
) -> bool:
    """Play the trials that are not done yet; whether all are done then.

    Args:
        address: of a Ray cluster whose machines see the same folders; None for this machine alone.
        after_trial: called when a trial has ended and the search's table and graphs are written anew.

    Raises UserError.
    """
    space = experiment.search
    assert space is not None  # check_search comes first
    folder = (root / experiment.name / "search").resolve()
    _keep_spec(experiment, folder, root)
    if warning := seed_warning(experiment):
        say(warning)
    ledger = Ledger(experiment.name, folder, space, say, after_trial)
    numbers = [number for number in range(space.count) if number not in ledger.done]
    if len(numbers) < space.count:
        say(f"{experiment.name}: {space.count - len(numbers)} of {space.count} trials were done before.")
    if numbers:
        total = experiment.args().T_max * experiment.meta.sessions
        every = space.asha.grace_steps if space.asha else max(total // REPORTS, 1)
        job = Job(experiment, folder, Path.cwd(), total, every)
        say(f"{experiment.name}: {'joins' if address else 'starts'} Ray, which may take a minute.")
        with ray_session(address, stop, "search"):
            _check_room(space, experiment.where)
            _Trials(job, space, ledger, Proposals(space, numbers, ledger.records), stop).run()
        end_sessions(folder.glob("*/session_*"))
    ledger.draw()
    return all(number in ledger.done for number in range(space.count))


def _keep_spec(experiment: Experiment, folder: Path, root: Path) -> None:
    """Write the experiment as a spec file. Raises UserError where the folder holds another search."""
    path = folder / "experiment.yaml"
    document: dict[str, Any] = {dash(name): value for name, value in experiment.flags.items()}
    for name, block in (("meta", experiment.meta), ("search", experiment.search)):
        if block:
            document[name] = block.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if path.exists() and _bound(read_mapping(path)) != _bound(document):
        raise of_another_spec(folder, "search", experiment.name, root)
    write_atomically(path, spec_bytes(f"{experiment.name}, of {experiment.file.name}", document))


def _bound(document: dict[str, Any]) -> dict[str, Any]:
    """The part of a search's spec that must stay the same from start to start."""
    space = {key: value for key, value in dict(document.get("search") or {}).items() if key not in FREE}
    return {**document, "search": space}


def _check_room(search: Search, where: str) -> None:
    """Raises UserError where no machine could ever run a trial."""
    import ray

    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(m.get("CPU", 0) >= search.cpus and m.get("GPU", 0) >= search.gpus for m in machines):
        room = " / ".join(f"{m.get('CPU', 0):g} CPUs and {m.get('GPU', 0):g} GPUs" for m in machines)
        asked = f"search.cpus {search.cpus} with search.gpus {search.gpus:g}"
        raise UserError(f"{where}: {asked} is more than any machine has: {room}.")


class _Trials:
    """The trials' processes: the caller's thread starts them, one of its own sees each to its end."""

    def __init__(self, job: Job, search: Search, ledger: Ledger, proposals: Proposals, stop: Stop) -> None:
        import ray

        self._ray, self._job, self._search, self._stop = ray, job, search, stop
        self._ledger, self._proposals, self._lock = ledger, proposals, Lock()  # which guards these two
        self._most_steps = (search.asha.max_steps or job.total) if search.asha else math.inf
        self._places = Semaphore(search.concurrent or len(proposals))
        self._player = ray.remote(num_cpus=search.cpus, num_gpus=search.gpus)(TrialPlayer)

    def run(self) -> None:
        """Play all trials to their ends, or until a stop was asked for and all have saved."""
        with ThreadPoolExecutor(len(self._proposals)) as pool:
            playing = []
            while self._proposals and not self._stop():
                if not self._places.acquire(timeout=POLL_EVERY_S):
                    continue
                with self._lock:
                    number, flags = self._proposals.next()
                player = self._player.remote(self._job, number, flags)
                if self._begins(number, flags, player):
                    playing.append(pool.submit(self._play, number, player))
        for future in playing:
            future.result()  # raises what its thread raised

    def _begins(self, number: int, flags: dict[str, Plain], player: Any) -> bool:
        """Wait for room on a machine; False where a stop comes first, and no session has begun."""
        ready = player.ready.remote()
        while not self._ray.wait([ready], timeout=POLL_EVERY_S)[0]:
            if self._stop():
                self._ray.kill(player)
                return False
        try:
            node = self._ray.get(ready)
        except self._ray.exceptions.RayError:
            node = ""
        with self._lock:
            self._ledger.begin(number, flags, node)
        return True

    def _play(self, number: int, player: Any) -> None:
        """See a trial to its end; where that fails for the search's own reasons, all others are stopped."""
        try:
            state = self._end_of(number, player)
            with self._lock:
                self._ledger.end(number, state)
                self._proposals.learn(number, self._ledger.records[number])
        except Exception:
            self._stop.set()
            raise
        finally:
            self._places.release()

    def _end_of(self, number: int, player: Any) -> str:
        """Take in one report after the other, and end the trial's process; the state in which it ended."""
        state = ""
        try:
            while not state:
                state = self._state_after(number, self._ray.get(player.next.remote()))
            self._ray.get(player.end.remote(), timeout=PATIENCE_S)
        except self._ray.exceptions.RayError:  # also where its sessions take too long to save
            state = state or "failed"
        self._ray.kill(player)
        return state

    def _state_after(self, number: int, progress: Progress) -> str:
        """The state in which the trial ends now; "" where it continues."""
        with self._lock:
            is_new = self._ledger.report(number, progress)
            if progress.over or progress.steps >= self._most_steps:
                return "finished"
            asha = self._search.asha
            if is_new and asha and is_stopped_early(asha, number, self._ledger.records):
                return "stopped early"
        return "stopped" if self._stop() else ""
