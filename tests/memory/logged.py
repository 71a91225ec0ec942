"""Random episodes for event logs, and how they are written as an actor writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from event_log.records import LoggedEpisode, LogHeader
from event_log.writer import EventLogWriter

PIXELS = LogHeader("blocks", (3, 2), "uint8", 6, None, None, frames_per_step=4)
VECTORS = LogHeader("swing", (4,), "float32", None, (-2.0, -1.0), (2.0, 1.0))


def random_episode(generator: np.random.Generator, header: LogHeader, environment: int) -> LoggedEpisode:
    """1 to 40 steps; terminated, truncated, or broken off by a stop. Its number is not known yet."""
    steps = int(generator.integers(1, 41))
    frames = generator.integers(1, 256, (steps + 1, *header.frame_shape)).astype(header.frame_dtype)
    low, high = header.action_low, header.action_high
    a_t = generator.integers(0, header.num_actions or 1, steps)
    if low is not None and high is not None:
        a_t = generator.uniform(low, high, (steps, len(low))).astype(np.float32)
    end = generator.integers(3)
    return LoggedEpisode(environment, -1, frames, a_t, generator.normal(size=steps), end == 1, end == 2)


def play(
    writer: EventLogWriter, episodes: list[LoggedEpisode], generator: np.random.Generator, begun: int = 0
) -> list[LoggedEpisode]:
    """Write `episodes`, those of an environment in their order, the environments mixed at random; returns
    them in the order of their ends, with their numbers from `begun` on.
    """
    waiting = {episode.environment: [] for episode in episodes}  # type: dict[int, list[LoggedEpisode]]
    for episode in reversed(episodes):
        waiting[episode.environment].append(episode)
    steps = dict.fromkeys(waiting, 0)
    ended = []
    while waiting:
        environment = int(generator.choice(list(waiting)))
        episode, step = waiting[environment][-1], steps[environment]
        if step == 0:
            episode = waiting[environment][-1] = episode._replace(number=begun)
            begun += 1
        if step < len(episode.r_t):
            write_step(writer, episode, step)
            steps[environment] += 1
        else:
            writer.end(environment, episode.frames[-1])
            ended.append(waiting[environment].pop())
            steps[environment] = 0
            if not waiting[environment]:
                del waiting[environment]
    return ended


def write_step(writer: EventLogWriter, episode: LoggedEpisode, step: int) -> None:
    """One step of an episode."""
    last = step + 1 == len(episode.r_t)
    writer.add(
        episode.environment,
        episode.frames[step],
        episode.a_t[step],
        float(episode.r_t[step]),
        last and episode.terminated,
        last and episode.truncated,
    )


def write_log(
    path: Path, header: LogHeader, seed: int, environments: int = 3, each: int = 6, piece_steps: int = 256
) -> list[LoggedEpisode]:
    """A whole log and what is in it."""
    generator = np.random.default_rng(seed)
    rows = [row for row in range(environments) for _ in range(each)]
    writer = EventLogWriter(path, header, piece_steps)
    written = play(writer, [random_episode(generator, header, row) for row in rows], generator)
    writer.close()
    return written


def same(found: LoggedEpisode, expected: LoggedEpisode) -> None:
    """Bit by bit, dtypes included."""
    assert found[:2] == expected[:2]
    assert found[5:] == expected[5:]
    for one, other in zip(found[2:5], expected[2:5], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
