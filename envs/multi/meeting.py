"""Threads that take every step together: each for its own part of the same environments."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from envs.config import EnvConfig, EnvFailure, failure_of
from envs.contract import SeededVectorEnv


class TableClosed(EnvFailure):
    """Another seat has ended, and nobody moves any more."""


class Meeting:
    """A barrier that threads may leave: a step is taken once all have come who have not left.

    Each thread is known by its seat, 0 to `seats` - 1.
    """

    def __init__(self, seats: int, advance: Callable[[], None], game: str) -> None:
        """`advance`: takes the step, in the thread that comes last."""
        self._advance, self._game = advance, game
        self._seats, self._waiting = set(range(seats)), set[int]()
        self._taken = 0  # steps
        self._is_closed = False
        self._failure: Exception | None = None
        self._changed = threading.Condition()
        self.is_moving = False  # while the step itself is taken

    def wait(self, seat: int, number: int) -> None:
        """Waits until step `number`, counted from 1, has been taken.

        Raises:
            TableClosed: after `close`.
            EnvFailure: the step failed.
        """
        with self._changed:
            self._waiting.add(seat)
            self._move_if_all_are_here()
            self._changed.wait_for(lambda: self._taken >= number or self._is_closed)
            if self._taken >= number:  # else it was closed before this step
                return
        if self._failure is not None:
            raise failure_of(self._game, self._failure) from self._failure
        raise TableClosed(f"Another seat of {self._game} has ended.")

    def leave(self, seat: int) -> None:
        """The others go on without it."""
        with self._changed:
            self._seats.discard(seat)
            self._waiting.discard(seat)
            self._move_if_all_are_here()

    def close(self) -> None:
        """Nobody waits for anybody any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _move_if_all_are_here(self) -> None:
        if not self._waiting or self._waiting != self._seats or self._is_closed:
            return
        self.is_moving = True
        try:
            self._advance()
            self._taken += 1
        except Exception as failure:  # noqa: BLE001 - raised in every thread that waits
            self._failure, self._is_closed = failure, True
        finally:
            self.is_moving = False
            self._waiting.clear()
            self._changed.notify_all()


class SeatView(SeededVectorEnv):
    """What one of several seats plays."""

    config: EnvConfig  # that it was made of
    environments: range  # its rows among those of all seats, as in a run that plays all of them


class Tables(Protocol):
    """Environments that several seats play, each in a thread and for a run of its own."""

    @property
    def seats(self) -> int:
        """How many."""

    def seat(self, seat: int) -> SeatView:
        """Its environments."""

    def leave(self, seat: int) -> None:
        """A seat plays no more."""

    def close(self) -> None:
        """Nobody waits for anybody any more."""

    def end(self) -> None:
        """Ends the environments, once no seat plays."""


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
