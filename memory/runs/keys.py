"""Every key that a run owns on a Redis server, in one place.

All keys of a run share the hash tag `{run:shard}`, so that a later Redis Cluster keeps them in one slot.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Keys:
    """Names of one run's keys; `run` holds no braces (checked by args.py)."""

    run: str
    shard: int = 0

    def _key(self, part: str) -> str:
        return f"{{{self.run}:{self.shard}}}:{part}"

    @property
    def settings(self) -> str:
        """String: the run's shared settings as JSON."""
        return self._key("settings")

    @property
    def counters(self) -> str:
        """Hash: epoch, steps, batches, learning_starts_at, last_chunk, and a few fields per actor."""
        return self._key("counters")

    @property
    def chunks(self) -> str:
        """Hash: chunk id -> the packed chunk; of the newest ones, as many as the ring has slots."""
        return self._key("chunks")

    @property
    def priorities(self) -> str:
        """Hash: ring slot -> chunk id (8 bytes) and L float32 leaves."""
        return self._key("priorities")

    @property
    def rollouts(self) -> str:
        """List: packed rollouts that wait for an on-policy learner."""
        return self._key("rollouts")

    @property
    def arrivals(self) -> str:
        """Stream: one entry `<chunk id>-0` per accepted chunk, with its initial leaves."""
        return self._key("arrivals")

    @property
    def episodes(self) -> str:
        """Stream: one entry per finished episode."""
        return self._key("episodes")

    @property
    def weights(self) -> str:
        """String: header and weights that actors act with."""
        return self._key("weights")

    @property
    def weights_version(self) -> str:
        """String: the version of `weights`, small enough to poll."""
        return self._key("weights_version")

    @property
    def status(self) -> str:
        """Hash: role -> what that process last said of itself."""
        return self._key("status")

    @property
    def learner_lease(self) -> str:
        """String with a time to live: the token of the one learner."""
        return self._key("lease:learner")

    def actor_lease(self, actor: int) -> str:
        """String with a time to live: the token of the one actor with this id."""
        return self._key(f"lease:actor:{actor}")

    @property
    def experience(self) -> tuple[str, ...]:
        """What a fresh start removes: everything but the leases."""
        return (
            self.settings,
            self.counters,
            self.chunks,
            self.priorities,
            self.arrivals,
            self.rollouts,
            self.episodes,
            self.weights,
            self.weights_version,
            self.status,
        )
