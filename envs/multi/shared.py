"""Tables at which each seat is played by a thread of its own, for a learner of its own.

Every seat sees the tables as its vector environment. A step is taken once all seats have given their actions,
so a seat waits for the others: for those whose learner is behind, too.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from envs.config import EnvConfig, EnvError, EnvFailure
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.multi.seats import SeatsVector
from envs.playback import Frames
from envs.registry import make_env


class TableClosed(EnvFailure):
    """Another seat has ended, and nobody moves any more."""


class SharedTables:
    """N tables of S seats; `seat(s)` is for the thread that plays seat s. Raises EnvError."""

    def __init__(self, config: EnvConfig, seats: int, seeds: Sequence[int]) -> None:
        """`seeds`: one for each table."""
        tables = make_env(config, [seed for seed in seeds for _ in range(seats)])
        if not isinstance(tables, SeatsVector) or tables.seats != seats:
            tables.close()
            raise EnvError(f"--seat-runs names {seats} runs, and {config.game} is no game of so many seats.")
        self.tables, self.seats, self.config = tables, seats, config
        self.frames: Frames = tables.reset()[0]
        self.steps: Steps | None = None
        self.actions = np.zeros((len(seeds), seats), np.int64)
        self.taken = 0  # steps
        self.is_moving = False  # while the games themselves take a step
        self._failure: BaseException | None = None
        self._all_here = threading.Barrier(seats, self._advance)

    def seat(self, seat: int) -> "SeatView":
        """Its environments."""
        return SeatView(self, seat)

    def step(self, number: int) -> Steps:
        """Waits until every seat has acted for step `number`, counted from 1; the steps of all rows.

        Raises TableClosed after `close`, EnvFailure where the game failed.
        """
        try:
            self._all_here.wait()
        except threading.BrokenBarrierError as broken:
            if self._failure is not None:
                raise EnvFailure(f"The tables failed: {self._failure}") from broken
            if self.taken < number:  # else it was closed after this step, before this thread woke up
                raise TableClosed(f"Another seat of {self.tables.game} has ended.") from broken
        assert self.steps is not None
        return self.steps

    def close(self) -> None:
        """Nobody waits for anybody any more."""
        self._all_here.abort()

    def _advance(self) -> None:
        self.is_moving = True
        try:
            self.steps = self.tables.step(self.actions.ravel())
            self.taken += 1
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            self.is_moving = False


class SeatView(SeededVectorEnv):
    """The tables as one seat sees them."""

    def __init__(self, shared: SharedTables, seat: int) -> None:
        tables = shared.tables
        super().__init__(
            tables.single_observation_space, tables.single_action_space, list(range(len(shared.actions)))
        )
        self.game, self.config, self.masked = tables.game, shared.config, tables.masked
        self._shared, self._seat, self._steps = shared, seat, 0
        self._rows = slice(seat, None, shared.seats)
        self.environments = range(seat, shared.seats * len(shared.actions), shared.seats)
        """Which rows these are among those of all seats, as in a run that plays all of them."""

    @property
    def waits_for_others(self) -> bool:
        """Unless the games are at work."""
        return not self._shared.is_moving

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        if self._shared.steps is not None or not mask.all():
            raise EnvError("A seat cannot begin anew by itself: start this actor again.")
        return self._shared.frames[self._rows], {}

    def _advance(self, actions: Actions) -> Steps:
        self._shared.actions[:, self._seat] = actions
        self._steps += 1
        frames, rewards, terminated, truncated, _ = self._shared.step(self._steps)
        rows = self._rows
        return frames[rows], rewards[rows], terminated[rows], truncated[rows], {}

    def close_extras(self, **kwargs: Any) -> None:
        """The other seats end as well."""
        self._shared.close()


def play_seats(tables: SharedTables, play: Callable[[int, SeatView], None]) -> None:
    """`play(seat, view)` of every seat in a thread of its own; raises the first error of any at the end."""
    failures: list[BaseException] = []

    def played(seat: int) -> None:
        try:
            play(seat, tables.seat(seat))
        except BaseException as failure:  # noqa: BLE001 - raised again below, in the thread that waits
            failures.append(failure)
        finally:
            tables.close()

    threads = [
        threading.Thread(target=played, args=(seat,), name=f"seat {seat}") for seat in range(tables.seats)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tables.tables.close()
    if failures:
        raise failures[0]
