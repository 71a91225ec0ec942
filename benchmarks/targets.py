"""What is measured, what it must reach, and what to try for."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """A figure of the report."""

    what: str
    must: float | None = None
    """With bfloat16 units, where that matters."""
    must_without: float | None = None
    """Without them; None where it is the same."""
    attempt: float | None = None
    at_most: bool = False
    """Whether smaller is better."""
    seen: float | None = None
    """What it came to where that is less than it must be: docs/performance.md says why."""

    def bound(self, bfloat16: bool) -> float | None:
        """What this machine must reach."""
        return self.must if bfloat16 or self.must_without is None else self.must_without

    def has_rotted(self, value: float, bfloat16: bool) -> bool:
        """Whether less than half of the speed is left that it must have, or has."""
        must = self.bound(bfloat16)
        if must is None:
            return False
        if self.at_most:
            return value > 2 * must
        return value < min(must, self.seen or must) / 2

    def is_met(self, value: float, bfloat16: bool) -> bool | None:
        """Whether `value` reaches the bound."""
        bound = self.bound(bfloat16)
        if bound is None:
            return None
        return value <= bound if self.at_most else value >= bound


TARGETS = {
    "replay.append_ratio": Target("transitions/s pushed, first priorities included", 30, attempt=60),
    "replay.sample_ratio": Target("batches of 32 from Redis, new priorities included", 30, attempt=80),
    "replay.sample_ratio_256": Target("the same with batches of 256", 30, attempt=80),
    "replay.bytes_per_transition": Target(
        "growth of Redis, the larger of Space Invaders and Pong",
        400,
        attempt=200,
        at_most=True,
    ),
    "replay.start_seconds_1m": Target("an empty replay of 1,000,000 is ready, s", 1, at_most=True),
    "replay.rebuild_seconds_1m": Target("its tree rebuilt from Redis, s", 3, at_most=True),
    "learner.step_ratio": Target("updates/s of IQN, N = N' = 64, K = 32, batch 32, 18 actions", 3, 1.1, 5),
    "learner.step_ratio_float32": Target("the same with --precision float32"),
    "learner.step_ratio_bound": Target(
        "the same if an update were its convolutions and the products of all features alone"
    ),
    "learner.step_ratio_cpu_spec": Target(
        "the same with specs/atari/rainbow_iqn_cpu.yaml", 2.5, 1.1, 4, seen=2.0
    ),
    "learner.step_ratio_cpu_spec_float32": Target("that with --precision float32"),
    "learner.step_ratio_cpu_spec_bound": Target(
        "that if an update were its convolutions and the products of all features alone"
    ),
    "acting.ratio": Target("steps/s of one actor of 16 environments, first priorities included", 8, 4, 20),
    "loop.ratio": Target("steps/s of actor and learner, 1 : 4, real processes", 3, 1.2, 5),
    "loop.learner_wait": Target(
        "share of time without a batch while the limiter allows one", 0.02, at_most=True
    ),
    "scale.efficiency": Target("transitions/s delivered / offered, actors of 200/s each", 0.95),
    "scale.knee_actors": Target("most actors at which that holds, on all cores of this machine"),
    "scale.p99_push_ms": Target("99th percentile of a push there, ms"),
    "scale.actors_per_redis_core": Target("actors that would keep one core busy with Redis alone"),
    "rnd.overlap_gain": Target("time of an iteration in turns / overlapped, a core each"),
    "rnd.overlap_efficiency": Target("gain of acting beside training / the most there could be", 0.9),
}
