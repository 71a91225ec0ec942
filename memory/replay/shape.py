"""How large a run's replay is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReplayShape:
    """Sizes of a run's replay."""

    memory_capacity: int  # transitions, in all shards together
    chunk_length: int  # L
    history_length: int  # H
    shards: int = 1

    @property
    def slots(self) -> int:
        """Chunks that the ring of a shard holds."""
        return max(self.memory_capacity // self.shards // self.chunk_length, 1)

    @property
    def all_slots(self) -> int:
        """Chunks that all shards hold."""
        return self.slots * self.shards
