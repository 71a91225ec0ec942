"""The command benchmark: every experiment of a file, several sessions side by side, one table of them all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from args import UserError
from lab.modes import sessions_of
from lab.names import RUNS
from lab.runner import Runner
from lab.session import Session, known_record
from lab.spec import Experiment
from lab.table import write_table

EVALUATE = Path(__file__).resolve().parents[1] / "test_multiple_seed.py"
EPISODES = 100
MODE = "train"


def chosen(experiments: Sequence[Experiment], names: Sequence[str], every: bool) -> list[Experiment]:
    """Those that are named; else all, or all but the extra ones. Raises UserError for an unknown name."""
    known = {experiment.name: experiment for experiment in experiments}
    for name in names:
        if name not in known:
            where = experiments[0].file
            raise UserError(f"{where} holds no experiment {name}: choose among {', '.join(known)}.")
    if names:
        return [known[name] for name in names]
    return [experiment for experiment in experiments if every or not experiment.meta.extra]


class Benchmark:
    """Plays what is not done yet, in the order of the file, and writes the table after each session."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        folder: Path,
        runner: Runner,
        say: Callable[[str], None],
        after_table: Callable[[], object] = lambda: None,
    ) -> None:
        """`experiments`: every row of the table, played or not; `after_table`: called when it was written."""
        self._experiments, self._folder, self._runner, self._say = experiments, folder, runner, say
        self._after_table, self._writing = after_table, Lock()

    def play(self, played: Sequence[Experiment], side_by_side: int) -> bool:
        """Whether all sessions of `played` are done and evaluated."""
        root = self._folder / RUNS
        sessions = [session for experiment in played for session in sessions_of(experiment, MODE, root)]
        with ThreadPoolExecutor(side_by_side) as pool:
            well = list(pool.map(self._see_to, sessions))
        self.write()
        return all(well)

    def write(self) -> None:
        """The table and its graphs, of what there is."""
        try:
            with self._writing:
                write_table(self._folder, self._experiments, self._folder / RUNS, MODE)
                self._after_table()
        except (ValueError, OSError) as error:
            self._say(f"The table cannot be written: {error}")

    def _see_to(self, session: Session) -> bool:
        before = known_record(session.folder).is_done and evaluation_of(session.folder) is not None
        well = self._runner.see_to(session, verbose=False) and self._evaluated(session.folder)
        if not before:
            with self._writing:
                self._runner.report(session.folder.parent)
            self.write()
        return well

    def _evaluated(self, folder: Path) -> bool:
        """Let the session's last snapshot play without noise; whether it did."""
        if evaluation_of(folder) is not None:
            return True
        models = [*folder.glob("last_model_*.pth")]
        if not models:
            return False
        words = ["--model", str(models[0]), "--evaluation-episodes", str(EPISODES), "--eval-noise", "off"]
        where = ["--path-to-results", str(folder), "--threads", "1"]
        with (folder / "evaluation.log").open("wb") as log:
            code = subprocess.run(
                [sys.executable, str(EVALUATE), *words, *where], stdout=log, stderr=subprocess.STDOUT
            ).returncode
        if code:
            self._say(f"{folder}: its evaluation failed; evaluation.log says why.")
        return code == 0


def evaluation_of(folder: Path) -> Path | None:
    """A session's `evaluation_<game>.json`, or None."""
    return next(iter(sorted(folder.glob("evaluation_*.json"))), None)
