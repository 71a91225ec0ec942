"""Transitions of one packed chunk, read as the sampler reads them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from memory.chunks.reader import Assembly, ChunkReader
from memory.replay.batch import Batch, Lookahead

ANY = ChunkReader()


def drawn(
    data: bytes,
    numbers: Iterable[int],
    reader: ChunkReader = ANY,
    history: int = 4,
    lookahead: Lookahead | None = None,
) -> list[Batch]:
    """Each as a batch of one, without its first dimension. Raises CodecError."""
    found, some = [], np.zeros(1)
    for m in numbers:
        assembly = Assembly(reader, 1, history, lookahead)
        assembly.add([data], [m])
        found.append(assembly.batch(some, some, some))
    return [_only_row(batch) for batch in found]


def _only_row(batch: Batch) -> Batch:
    there = {name: column for name, column in batch._asdict().items() if column is not None}
    return batch._replace(**{name: column[0] for name, column in there.items()})
