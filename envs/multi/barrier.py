"""Several threads that step the same environments together, each for its own seat."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from envs.config import EnvConfig, EnvFailure, failure_of
from envs.contract import SeededVectorEnv


class OtherSeatEnded(EnvFailure):
    """A seat's thread has ended, so no further step is taken."""


class StepBarrier:
    """A barrier before each step, which threads may leave: the step is taken once all that are left wait.

    Threads are numbered by their seats, 0 to `seats` - 1.
    """

    def __init__(self, seats: int, advance: Callable[[], None], game: str) -> None:
        """`advance`: takes the step, in the last thread to arrive."""
        self._advance, self._game = advance, game
        self._seats, self._waiting = set(range(seats)), set[int]()
        self._steps_taken = 0
        self._is_closed = False
        self._failure: Exception | None = None
        self._changed = threading.Condition()
        self.is_moving = False  # while the step itself is taken

    def wait(self, seat: int, number: int) -> None:
        """Waits until step `number`, counted from 1, has been taken.

        Raises:
            OtherSeatEnded: after `close`.
            EnvFailure: the step failed.
        """
        with self._changed:
            self._waiting.add(seat)
            self._move_if_all_are_here()
            self._changed.wait_for(lambda: self._steps_taken >= number or self._is_closed)
            if self._steps_taken >= number:  # else it was closed before this step
                return
        if self._failure is not None:
            raise failure_of(self._game, self._failure) from self._failure
        raise OtherSeatEnded(f"Another seat of {self._game} has ended.")

    def leave(self, seat: int) -> None:
        """Later steps do not wait for this seat."""
        with self._changed:
            self._seats.discard(seat)
            self._waiting.discard(seat)
            self._move_if_all_are_here()

    def close(self) -> None:
        """Wake all threads that wait: no further step is taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _move_if_all_are_here(self) -> None:
        if not self._waiting or self._waiting != self._seats or self._is_closed:
            return
        self.is_moving = True
        try:
            self._advance()
            self._steps_taken += 1
        except Exception as failure:  # noqa: BLE001 - raised in every thread that waits
            self._failure, self._is_closed = failure, True
        finally:
            self.is_moving = False
            self._waiting.clear()
            self._changed.notify_all()


class SeatView(SeededVectorEnv):
    """The environments that one of several seats plays."""

    config: EnvConfig  # that it was made of
    environments: range  # which rows they would be in a run that plays all seats


class Tables(ABC):
    """Environments that `seats` seats play together, each in its own thread and for its own run."""

    def __init__(
        self, seats: int, barriers: Sequence[StepBarrier], ends: Sequence[Callable[[], None]]
    ) -> None:
        """`barriers`: where seats wait; `ends`: end the environments."""
        self.seats, self._barriers, self._ends = seats, barriers, ends

    @abstractmethod
    def seat(self, seat: int) -> SeatView:
        """The environments of a seat."""

    @abstractmethod
    def leave(self, seat: int) -> None:
        """A seat has stopped playing."""

    def close(self) -> None:
        """Wake all seats that wait: no further step is taken."""
        for barrier in self._barriers:
            barrier.close()

    def end(self) -> None:
        """Ends the environments, once no seat plays."""
        for end in self._ends:
            end()


def play_seats(tables: Tables, play: Callable[[int, SeatView], None]) -> None:
    """`play(seat, view)` of every seat in a thread of its own; raises the first error of any at the end."""
    failures: list[BaseException] = []
    all_ended = threading.Barrier(tables.seats)

    def played(seat: int) -> None:
        try:
            play(seat, tables.seat(seat))
        except BaseException as failure:  # noqa: BLE001 - raised again below, in the thread that waits
            failures.append(failure)
            tables.close()
        tables.leave(seat)
        all_ended.wait()  # a process that a thread started may end with that thread (Unity's players do)

    threads = [
        threading.Thread(target=played, args=(seat,), name=f"seat {seat}") for seat in range(tables.seats)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tables.end()
    if failures:
        raise failures[0]
