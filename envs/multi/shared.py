"""Games whose seats are played by a thread each, for a learner each.

To each seat the games look like a vector environment of its own. A step is taken once all seats have chosen
their actions, so the slowest seat, or one that waits for its learner, holds up the others.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from envs.config import EnvConfig, EnvError
from envs.contract import Actions, Flags, Infos, Steps
from envs.multi.barrier import SeatView, StepBarrier, Tables
from envs.multi.seats import SeatsVector
from envs.playback import Frames
from envs.registry import make_env


class SharedTables(Tables):
    """N tables of S seats; `seat(s)` is for the thread that plays seat s. Raises EnvError."""

    def __init__(self, config: EnvConfig, seats: int, seeds: Sequence[int]) -> None:
        """`seeds`: one for each table."""
        tables = make_env(config, [seed for seed in seeds for _ in range(seats)])
        if not isinstance(tables, SeatsVector) or tables.seats != seats:
            tables.close()
            raise EnvError(f"--seat-runs names {seats} runs, and {config.game} is no game of so many seats.")
        self.tables, self.config = tables, config
        self.frames: Frames = tables.reset()[0]
        self.steps: Steps | None = None
        self.actions = np.zeros((len(seeds), seats), np.int64)
        self.barrier = StepBarrier(seats, self._advance, tables.game)
        super().__init__(seats, [self.barrier], [tables.close])

    def seat(self, seat: int) -> SeatView:
        """The environments of a seat."""
        return TableView(self, seat)

    def leave(self, seat: int) -> None:
        """The games end: nobody plays against an empty seat."""
        self.close()

    def _advance(self) -> None:
        self.steps = self.tables.step(self.actions.ravel())


class TableView(SeatView):
    """The environments of one seat."""

    def __init__(self, shared: SharedTables, seat: int) -> None:
        tables = shared.tables
        super().__init__(
            tables.single_observation_space, tables.single_action_space, list(range(len(shared.actions)))
        )
        self.game, self.config, self.masked = tables.game, shared.config, tables.masked
        self._shared, self._seat, self._steps = shared, seat, 0
        self._rows = slice(seat, None, shared.seats)
        self.environments = range(seat, shared.seats * len(shared.actions), shared.seats)

    @property
    def waits_for_others(self) -> bool:
        """Whether the games wait for another seat's action."""
        return not self._shared.barrier.is_moving

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        if self._shared.steps is not None or not mask.all():
            raise EnvError("A seat cannot begin anew by itself: start this actor again.")
        return self._shared.frames[self._rows], {}

    def _advance(self, actions: Actions) -> Steps:
        self._shared.actions[:, self._seat] = actions
        self._steps += 1
        self._shared.barrier.wait(self._seat, self._steps)
        assert self._shared.steps is not None
        frames, rewards, terminated, truncated, _ = self._shared.steps
        rows = self._rows
        return frames[rows], rewards[rows], terminated[rows], truncated[rows], {}

    def close_extras(self, **kwargs: Any) -> None:
        """The other seats end as well."""
        self._shared.close()
