"""A replay that was filled from an event log holds exactly the transitions that were recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from acting.writer import ExperienceWriter
from agents.base import Problem
from agents.random_agent import RandomAgent, RandomConfig
from event_log.records import EventLogError, LoggedEpisode, LogHeader
from event_log.writer import EventLogWriter
from learning.saved.fill_replay import FileProgress, preseed
from memory.chunks.chunk import CHUNK_ID, chunk_from_bytes
from memory.replay.batch import Batch
from memory.replay.priorities import FIRST_LEAF, PriorityRule
from memory.replay.replay import Replay
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.run import LearnerSlot
from memory.runs.scripts import LostLease
from memory.server.connection import Client
from memory.server.patience import Interrupted, Patience
from tests.memory.logged import PIXELS, VECTORS, random_episode, write_log, write_step
from tests.memory.reference import Episode
from tests.memory.road import SHAPE, begin, make_replay
from tests.recording import header_of, record

CAPACITY = 8000
PATIENCE = Patience(5.0)


def _slot(client: Client, keys: Keys, epoch: int, patience: Patience = PATIENCE) -> LearnerSlot:
    lease: Any = None
    return LearnerSlot(client, keys, lease, epoch, patience)


def _preseed(
    path: Path, header: LogHeader, client: Client, keys: Keys, capacity: int = CAPACITY
) -> tuple[int, Replay]:
    epoch = begin(client, keys, capacity).epoch
    replay = make_replay(client, keys, epoch, capacity)
    slots = replay.shape.slots
    pushed = preseed(path, header, _slot(client, keys, epoch), SHAPE, slots, FileProgress(path))
    replay.load()
    return pushed, replay


def _drawn(replay: Replay) -> Batch:
    """Each transition once: priorities are equal, and one leaf is drawn from each of as many equal parts."""
    batch = replay.sample(replay.fill, beta=0.5)
    assert len(set(batch.leaf.tolist())) == replay.fill
    return batch


def _expected(episodes: list[LoggedEpisode]):  # type: ignore[no-untyped-def]
    """Transitions straight from their definition; after a kill the last one of an episode is not known."""
    for episode in episodes:
        steps = len(episode.frames) - 1
        whole = Episode(
            frames=list(episode.frames),
            actions=list(episode.a_t[:steps]),
            rewards=episode.r_t[:steps].tolist(),
            terminated=episode.terminated,
        )
        yield from (whole.transition(i, SHAPE) for i in range(steps))


def _check(batch: Batch, episodes: list[LoggedEpisode]) -> None:
    """No two frames are alike, so that the newest one names its transition."""
    expected = {transition[0].tobytes(): transition for transition in _expected(episodes)}
    assert len(batch.r_t) == len(expected)
    for s_tm1, a_tm1, r_t, discount_t, s_t in zip(*batch[:5], strict=True):
        wanted = expected.pop(s_tm1.tobytes())
        np.testing.assert_array_equal(a_tm1, wanted[1])
        np.testing.assert_allclose([r_t, discount_t], wanted[2:4], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(s_t, wanted[4])


@pytest.mark.parametrize("header", [PIXELS, VECTORS])
@pytest.mark.parametrize("piece_steps", [1, 7, 256])
def test_the_replay_draws_what_was_recorded(
    client: Client, keys: Keys, tmp_path: Path, header: LogHeader, piece_steps: int
) -> None:
    """Terminated, truncated and broken-off episodes of several environments; T_actors stays 0."""
    path = tmp_path / "log"
    written = write_log(path, header, seed=piece_steps, environments=3, each=8, piece_steps=piece_steps)
    pushed, replay = _preseed(path, header, client, keys)
    assert pushed == replay.fill == sum(len(episode.r_t) for episode in written)
    assert replay.total_priority == pushed * FIRST_LEAF
    assert read_counters(client, keys).steps == 0
    _check(_drawn(replay), written)


def test_an_episode_broken_off_by_a_kill_lacks_its_last_transition(
    client: Client, keys: Keys, tmp_path: Path
) -> None:
    """Both in the middle of the log and at its end."""
    generator, path, written = np.random.default_rng(1), tmp_path / "log", []
    for _ in range(3):
        episode = random_episode(generator, PIXELS, 0)
        writer = EventLogWriter(path, PIXELS, piece_steps=5)
        for step in range(len(episode.r_t)):
            write_step(writer, episode, step)
        writer.close()
        written.append(episode._replace(frames=episode.frames[:-1], terminated=False, truncated=False))
    pushed, replay = _preseed(path, PIXELS, client, keys)
    assert pushed == sum(len(episode.r_t) - 1 for episode in written)
    _check(_drawn(replay), written)


def test_the_chunks_are_those_the_actor_would_have_pushed(client: Client, keys: Keys, tmp_path: Path) -> None:
    play = record(tmp_path / "log", "probe:catch", steps=75)
    writer = ExperienceWriter(_chance(), 1, SHAPE, PriorityRule(1.0), {})
    packets = [packet for step in play.steps for packet in writer.add(step)] + writer.flush(play.frames)
    _preseed(tmp_path / "log", header_of("probe:catch"), client, keys)
    stored = client.hgetall(keys.chunks)
    assert len(stored) == len(packets)
    for slot, packet in enumerate(packets):
        found = chunk_from_bytes(stored[b"%d" % (slot + 1)])
        for one, other in zip(found, chunk_from_bytes(packet.data), strict=True):
            np.testing.assert_array_equal(one, other)
        leaves = client.hget(keys.priorities, slot)[CHUNK_ID.size :]
        np.testing.assert_array_equal(np.frombuffer(leaves, np.float32), packet.leaves)


def _chance() -> RandomAgent:
    return RandomAgent(
        Problem((1, 10, 5), "uint8", 3, None, None), RandomConfig(), torch.device("cpu"), 0, False
    )


def test_a_log_larger_than_the_replay_leaves_its_newest(
    client: Client, keys: Keys, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log"
    written = write_log(path, PIXELS, seed=2, environments=1, each=20)
    capacity = 80
    pushed, replay = _preseed(path, PIXELS, client, keys, capacity)
    assert pushed == sum(len(episode.r_t) for episode in written) > 2 * capacity
    assert caplog.text.count("oldest transitions are overwritten") == 1
    assert replay.filled_slots == replay.shape.slots
    newest = written[-1].frames[-2].tobytes()
    assert newest in {s_tm1[-1].tobytes() for s_tm1 in _drawn(replay).s_tm1}


def test_another_game_is_refused_before_anything_is_pushed(
    client: Client, keys: Keys, tmp_path: Path
) -> None:
    write_log(tmp_path / "log", PIXELS, seed=3)
    with pytest.raises(EventLogError, match="recorded from blocks with .* played here is swing with"):
        _preseed(tmp_path / "log", VECTORS, client, keys)
    assert not client.exists(keys.chunks)


def test_a_stop_and_another_learner_end_it(client: Client, keys: Keys, tmp_path: Path) -> None:
    path = tmp_path / "log"
    write_log(path, PIXELS, seed=4)
    opened, progress = begin(client, keys, CAPACITY), FileProgress(path)
    slots = CAPACITY // SHAPE.chunk_length
    with pytest.raises(Interrupted):
        slot = _slot(client, keys, opened.epoch, Patience(5.0, lambda: True))
        preseed(path, PIXELS, slot, SHAPE, slots, progress)
    begin(client, keys, CAPACITY)
    with pytest.raises(LostLease, match="Another learner has begun"):
        preseed(path, PIXELS, _slot(client, keys, opened.epoch), SHAPE, slots, progress)


def test_progress_goes_from_the_first_piece_to_the_whole_log(
    client: Client, keys: Keys, tmp_path: Path
) -> None:
    path, told = tmp_path / "log", list[float]()
    write_log(path, PIXELS, seed=5)
    epoch = begin(client, keys, CAPACITY).epoch
    preseed(path, PIXELS, _slot(client, keys, epoch), SHAPE, CAPACITY, told.append)
    assert told == sorted(told)
    assert 0 < told[0] < 0.5 and told[-1] == 1.0
