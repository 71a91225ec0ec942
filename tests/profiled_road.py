"""Files and functions that a serial run enters: `python -m tests.profiled_road STEPS AFTER FLAGS...`.

Runs launch_learner.py in this process, without the status that is due each second: whether one falls into a
few steps would depend on how busy the machine is. After `AFTER` vector steps it counts every Python function
of the project that is entered during the next `STEPS`, in all threads but that of the lease, for the same
reason. Compiled loops are no Python functions: they count where they are called. The last line of output is
the count as JSON.
"""

from __future__ import annotations

import json
import math
import runpy
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from memory.runs import reports

ROOT = Path(__file__).resolve().parents[1]
NOT_PRODUCT = {".venv", "tests"}
VECTOR_STEP = "Actor.step"
"""One call is one vector step with all that follows from it."""


class Road:
    """Counts entered functions between two vector steps."""

    def __init__(self, steps: int, after: int) -> None:
        self._first, self._last = after, after + steps
        self._vector_steps = 0
        self._rooms: dict[CodeType, bool] = {}
        self.calls: Counter[CodeType] = Counter()

    def enter(self, frame: FrameType, event: str, argument: Any) -> None:
        """A profile function (sys.setprofile)."""
        code = frame.f_code
        if event != "call" or not self._is_ours(code):
            return
        if code.co_qualname == VECTOR_STEP:
            self._vector_steps += 1
        in_lease = threading.current_thread().name.startswith("lease ")
        if self._first < self._vector_steps <= self._last and not in_lease:
            self.calls[code] += 1

    @property
    def complete(self) -> bool:
        """Whether all steps were seen."""
        return self._vector_steps > self._last

    def _is_ours(self, code: CodeType) -> bool:
        if code not in self._rooms:
            path = Path(code.co_filename)
            self._rooms[code] = path.is_relative_to(ROOT) and not NOT_PRODUCT & set(
                path.relative_to(ROOT).parts
            )
        return self._rooms[code]


def main(steps: int, after: int, flags: list[str]) -> None:
    """Profile a serial run with these flags."""
    reports.STATUS_EVERY_S = math.inf  # before others import it
    road = Road(steps, after)
    threading.setprofile(road.enter)
    sys.setprofile(road.enter)
    sys.argv = ["launch_learner.py", *flags]
    runpy.run_path(str(ROOT / "launch_learner.py"), run_name="__main__")
    sys.setprofile(None)
    assert road.complete, "the run was too short"
    files: Counter[str] = Counter()
    for code, calls in road.calls.items():
        files[str(Path(code.co_filename).relative_to(ROOT))] += calls
    for file, calls in files.most_common():
        print(f"{calls / steps:8.1f} calls a step  {file}")
    lines = sum(len((ROOT / file).read_text().splitlines()) for file in files)
    figures = {"files": len(files), "lines": lines, "functions": len(road.calls)}
    print(json.dumps({**figures, "calls_per_step": round(files.total() / steps, 1)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
