"""How many threads an update takes: as many as are quickest, found out by trying."""

from __future__ import annotations

import logging
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType

import torch

log = logging.getLogger(__name__)

ROUNDS = 3
UPDATES_PER_TURN = 3
"""Of one number of threads; the first of them is not timed, since kernels are made ready for that number."""
FIRST_PAUSE, LONGEST_PAUSE = 10, 100
"""From one trial to the next, in lengths of a trial: longer after each, since what else runs changes most at
the start. In the end a hundredth of all updates may be slower ones.
"""


class ThreadChoice:
    """Goes around every update, `with` it; several numbers of threads are tried in turns, now and then.

    Threads wait for each other after each of the hundreds of operations of an update. Those of a small
    network, or of one that shares its cores with other processes, wait longer than they work.
    """

    def __init__(
        self,
        most: int,
        set_threads: Callable[[int], None] = torch.set_num_threads,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`most`: threads that there may be; they and every half of them are tried."""
        self._set_threads, self._clock = set_threads, clock
        self._numbers = list(_halves(most))
        self.threads = most
        self._ahead: deque[tuple[int, bool]] = deque()  # number of threads, and whether it is timed
        self._seconds: dict[int, list[float]] = {}
        self._pause, self._until_trial = FIRST_PAUSE, 0

    @property
    def trying(self) -> bool:
        """Whether a trial is under way, or about to begin."""
        return len(self._numbers) > 1 and self._until_trial == 0

    def __enter__(self) -> None:
        if self.trying and not self._ahead:
            turn = [index > 0 for index in range(UPDATES_PER_TURN)]
            self._ahead.extend((n, timed) for _ in range(ROUNDS) for n in self._numbers for timed in turn)
            self._seconds = {number: [] for number in self._numbers}
        if self._ahead:
            self._set_threads(self._ahead[0][0])
        self._began = self._clock()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ahead:
            self._until_trial = max(self._until_trial - 1, 0)
            return
        number, timed = self._ahead.popleft()
        if timed:
            self._seconds[number].append(self._clock() - self._began)
        if not self._ahead:
            self._choose()

    def _choose(self) -> None:
        medians = {number: statistics.median(seconds) for number, seconds in self._seconds.items()}
        before, self.threads = self.threads, min(medians, key=medians.__getitem__)
        self._set_threads(self.threads)
        self._until_trial = self._pause * ROUNDS * UPDATES_PER_TURN * len(self._numbers)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if self.threads != before:
            found = ", ".join(f"{1000 * seconds:.3g} ms with {n}" for n, seconds in medians.items())
            log.info("An update takes %s threads: it goes on with %d.", found, self.threads)


def _halves(most: int) -> Iterator[int]:
    """`most`, half of it, and so on to 1."""
    while most >= 1:
        yield most
        most //= 2
