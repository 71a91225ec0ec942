"""How many threads an update takes, and for how much at a time: what is quickest, found out by trying."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Generator
from types import TracebackType

from agents.parts.parallel import Threads, set_threads

log = logging.getLogger(__name__)

ROUNDS = 3
UPDATES_PER_TURN = 3
"""Of one choice; the first of them is not timed, since kernels are made ready for that number of threads."""
HOPELESS = 1.5
"""A choice that takes so many times as long as the best is left out of the rest of a trial."""
FIRST_PAUSE, LONGEST_PAUSE = 1, 100
"""From one trial to the next, in the time that a trial's updates took: twice as long after each, since what
else is there changes most at the start: actors play at full speed until they are as far ahead as they may.
"""


def choices(most: int, passes: int) -> list[Threads]:
    """`most` threads, half of it, and so on to 1: for one pass, and divided among up to `passes` at once."""
    numbers = [most >> halvings for halvings in range(most.bit_length())]
    return [
        Threads(number // at_once, at_once)
        for number in numbers
        for at_once in range(1, passes + 1)
        if number >= at_once
    ]


def longest_trial(most: int, passes: int) -> int:
    """Updates after which a learner of up to `most` threads has made its first choice."""
    return ROUNDS * UPDATES_PER_TURN * len(choices(most, passes))


class ThreadChoice:
    """Goes around every update, `with` it; several choices are tried in turns, now and then.

    Threads wait for each other after each of the hundreds of operations of a pass. Those of a small network,
    or of one that shares its cores with other processes, wait longer than they work; passes side by side wait
    for each other once.
    """

    def __init__(
        self,
        most: int,
        passes: int,
        set_threads: Callable[[Threads], None] = set_threads,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`most`: threads that there may be; `passes`: that an update may do at once."""
        self._set_threads, self._clock = set_threads, clock
        self._choices = choices(most, passes)
        self.threads = Threads(most)
        self._trial: Generator[Threads, float, None] | None = None
        self._pause, self._updates_until_trial = FIRST_PAUSE, 0

    @property
    def trying(self) -> bool:
        """Whether a trial is under way, or about to begin."""
        return len(self._choices) > 1 and self._updates_until_trial == 0

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

    def _compare(self) -> Generator[Threads, float, None]:
        """Yields the threads of the next update, is sent its seconds, and chooses in the end."""
        seconds, trial_seconds = dict[Threads, list[float]](), 0.0
        candidates = self._choices
        for _ in range(ROUNDS):
            for threads in candidates:
                turn = []
                for _ in range(UPDATES_PER_TURN):
                    turn.append((yield threads))
                trial_seconds += sum(turn)
                seconds.setdefault(threads, []).extend(turn[1:])
                if threads.passes == 1 and _hopeless(threads, _of_one_pass(seconds)):
                    break  # fewer threads are slower still
            candidates = [threads for threads in seconds if not _hopeless(threads, seconds)]
        medians = {threads: statistics.median(seconds[threads]) for threads in candidates}
        self._choose(medians, trial_seconds)

    def _choose(self, medians: dict[Threads, float], trial_seconds: float) -> None:
        before, self.threads = self.threads, min(medians, key=medians.__getitem__)
        self._updates_until_trial = int(self._pause * trial_seconds / medians[self.threads])
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if self.threads != before:
            found = ", ".join(f"{1000 * seconds:.3g} ms with {n}" for n, seconds in medians.items())
            log.info("An update takes %s threads: it goes on with %s.", found, self.threads)


def _of_one_pass(seconds: dict[Threads, list[float]]) -> dict[Threads, list[float]]:
    return {threads: taken for threads, taken in seconds.items() if threads.passes == 1}


def _hopeless(threads: Threads, seconds: dict[Threads, list[float]]) -> bool:
    return min(seconds[threads]) > HOPELESS * min(map(min, seconds.values()))
