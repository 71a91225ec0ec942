"""How many threads an update takes: as many as are quickest, found out by trying."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Generator
from types import TracebackType

import torch

log = logging.getLogger(__name__)

ROUNDS = 3
UPDATES_PER_TURN = 3
"""Of one number of threads; the first of them is not timed, since kernels are made ready for that number."""
HOPELESS = 1.5
"""A number of threads that takes so many times as long as the best is left out of the rest of a trial."""
FIRST_PAUSE, LONGEST_PAUSE = 10, 100
"""From one trial to the next, in the time that a trial's updates took: longer after each, since what else is
there changes most at the start.
"""


def numbers_to_try(most: int) -> list[int]:
    """`most`, half of it, and so on to 1."""
    return [most >> halvings for halvings in range(most.bit_length())]


def longest_trial(most: int) -> int:
    """Updates after which a learner of up to `most` threads has made its first choice."""
    return ROUNDS * UPDATES_PER_TURN * len(numbers_to_try(most))


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
        self._numbers = numbers_to_try(most)
        self.threads = most
        self._trial: Generator[int, float, None] | None = None
        self._pause, self._updates_until_trial = FIRST_PAUSE, 0

    @property
    def trying(self) -> bool:
        """Whether a trial is under way, or about to begin."""
        return len(self._numbers) > 1 and self._updates_until_trial == 0

    def __enter__(self) -> None:
        if self.trying and self._trial is None:
            self._trial = self._compare()
            self._set_threads(next(self._trial))
        self._began = self._clock()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._trial is None:
            self._updates_until_trial = max(self._updates_until_trial - 1, 0)
            return
        try:
            self._set_threads(self._trial.send(self._clock() - self._began))
        except StopIteration:
            self._trial = None
            self._set_threads(self.threads)

    def _compare(self) -> Generator[int, float, None]:
        """Yields the number of threads of the next update, is sent its seconds, and chooses in the end."""
        seconds, trial_seconds = dict[int, list[float]](), 0.0
        candidates = self._numbers
        for _ in range(ROUNDS):
            for number in candidates:
                turn = []
                for _ in range(UPDATES_PER_TURN):
                    turn.append((yield number))
                trial_seconds += sum(turn)
                seconds.setdefault(number, []).extend(turn[1:])
                if min(seconds[number]) > HOPELESS * min(map(min, seconds.values())):
                    break  # fewer threads are slower still
            best = min(map(min, seconds.values()))
            candidates = [number for number in seconds if min(seconds[number]) <= HOPELESS * best]
        medians = {number: statistics.median(seconds[number]) for number in candidates}
        self._choose(medians, trial_seconds)

    def _choose(self, medians: dict[int, float], trial_seconds: float) -> None:
        before, self.threads = self.threads, min(medians, key=medians.__getitem__)
        self._updates_until_trial = int(self._pause * trial_seconds / medians[self.threads])
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if self.threads != before:
            found = ", ".join(f"{1000 * seconds:.3g} ms with {n}" for n, seconds in medians.items())
            log.info("An update takes %s threads: it goes on with %d.", found, self.threads)
