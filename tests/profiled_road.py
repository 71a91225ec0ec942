"""Files and functions that a serial run enters: `python -m tests.profiled_road STEPS AFTER FLAGS...`.

Runs launch_learner.py in this process, without the status that is due each second: whether one falls into a
few steps would depend on how busy the machine is. After `AFTER` vector steps it counts every Python function
of the project that is entered during the next `STEPS`, in all threads but that of the lease, for the same
reason. Numba announces to a profiler which compiled loops Python calls, so these count too. The output lists
the files; its last line is the count as JSON.
"""

from __future__ import annotations

import inspect
import json
import math
import runpy
import sys
import threading
from collections import Counter, defaultdict
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
    lines = _list_files(road.calls, steps)
    figures = {"files": len(lines), "lines": sum(lines.values()), "functions": len(road.calls)}
    print(json.dumps({**figures, "calls_per_step": round(road.calls.total() / steps, 1)}))


def _list_files(calls: Counter[CodeType], steps: int) -> dict[str, int]:
    """Print the files that were entered, the longest first, with the functions entered in each.

    Returns:
        Lines by file.
    """
    entered: dict[str, list[CodeType]] = defaultdict(list)
    for code in sorted(calls, key=lambda code: code.co_firstlineno):
        entered[str(Path(code.co_filename).relative_to(ROOT))].append(code)
    lines = {file: len((ROOT / file).read_text().splitlines()) for file in entered}
    print("lines of the file, lines of the functions entered in it, calls a step")
    for file in sorted(entered, key=lines.__getitem__, reverse=True):
        codes = entered[file]
        used = len(set().union(*map(_lines_of, codes)))
        calls_per_step = sum(calls[code] for code in codes) / steps
        names = ", ".join(code.co_qualname for code in codes)
        print(f"{lines[file]:4} {used:4} {calls_per_step:6.1f}  {file}: {names}")
    return lines


def _lines_of(code: CodeType) -> range:
    """Of its file; those of a function inside another are the other's too."""
    source, first = inspect.getsourcelines(code)
    return range(first, first + len(source))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
