"""A replay of games of several kinds: each game has shards of its own; each batch is of one game, in turn.

Batches alternate because the frames of two kinds have no common shape. They do so in turn, not by priority:
losses of different games have different units, and the game of the largest rewards would take all updates.
Within a batch priorities and importance weights are those of its game alone.

Shard s holds game s modulo the number of games, of which the number of shards is a multiple.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from memory.chunks.chunk import ChunkLimits
from memory.chunks.reader import Assembly, ChunkReader
from memory.replay.batch import Batch
from memory.replay.priorities import SumTree
from memory.replay.replay import Replay
from memory.replay.shards import Shards


class GameShape(NamedTuple):
    """What the chunks of one game are."""

    game: str
    history_length: int  # H
    limits: ChunkLimits


class GamesReplay(Shards):
    """Draws each batch from the shards of one game."""

    def __init__(self, games: Sequence[GameShape], *of_shards: Any) -> None:
        """`games`: in the order of the run; the others are as of `Shards`, up to its generator."""
        super().__init__(*of_shards)
        self._games, self._readers = games, [ChunkReader(game.limits) for game in games]
        self._game = -1  # that the last batch was drawn from

    def scalars(self) -> dict[str, float]:
        """Transitions and their mean priority, of each game."""
        figures = {}
        for number, game in enumerate(self._games):
            trees = self._trees(number)
            transitions, total = sum(tree.filled for tree in trees), sum(tree.total for tree in trees)
            figures[f"replay/transitions/{game.game}"] = float(transitions)
            figures[f"replay/mean_priority/{game.game}"] = total / max(transitions, 1)
        return figures

    def sample(self, batch_size: int, beta: float, later_betas: Sequence[float] = ()) -> Batch:
        """As `Shards.sample`; the batch says of which game it is."""
        batch = super().sample(batch_size, beta, later_betas)
        return batch._replace(game=batch.leaf // self._leaves % len(self._games))

    def _drawn(self) -> dict[int, Replay]:
        self._game = self._turn()
        return self._replays_of(self._game)

    def _assembly(self, rows: int) -> Assembly:
        return Assembly(self._readers[self._game], rows, self._games[self._game].history_length)

    def _turn(self) -> int:
        """The next game that there is something of."""
        count = len(self._games)
        order = [(self._game + 1 + ahead) % count for ahead in range(count)]
        return next(game for game in order if any(tree.filled for tree in self._trees(game)))

    def _trees(self, game: int) -> list[SumTree]:
        return [replay._ring.tree for replay in self._replays_of(game).values()]

    def _replays_of(self, game: int) -> dict[int, Replay]:
        """A shard's lives are equal modulo the number of shards, so of games too."""
        return {life: replay for life, replay in self._replays.items() if life % len(self._games) == game}
