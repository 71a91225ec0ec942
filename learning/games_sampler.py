"""The sampler of a run whose games are of several kinds."""

from __future__ import annotations

from learning.sampler import Sampler
from memory.replay.games import GamesReplay


class GamesSampler(Sampler):
    """Shows of each game what the replay holds of it, too."""

    _replay: GamesReplay

    def scalars(self) -> dict[str, float]:
        """As `Sampler.scalars`; transitions and priorities of each game besides."""
        figures = super().scalars()
        for game, held in self._replay.by_game().items():
            figures[f"replay/transitions/{game}"] = float(held.transitions)
            figures[f"replay/mean_priority/{game}"] = held.total_priority / max(held.transitions, 1)
        return figures
