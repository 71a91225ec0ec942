"""Episodes on their way to the learner: each once, in order, only under the epoch and lease in force."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memory.runs import episodes, reports
from memory.runs.episodes import EpisodeReporter
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.reports import read_episodes
from memory.runs.scripts import LostLease, Sender, StaleEpoch
from memory.server.connection import Client
from reporting.tables import EpisodeRecord
from tests.memory.road import begin


def episode_of(sequence: int, actor: int = 0) -> EpisodeRecord:
    """One with something in every field."""
    counts = [[sequence, 0, 8], [4, 4, 1]]
    return EpisodeRecord(
        actor, sequence, 1, 100 * sequence, 80, 1.5, 2.5, 3.5, 9, sequence == 2, counts, [1, 7]
    )


@pytest.fixture
def lease(client: Client, keys: Keys) -> Iterator[Lease]:
    with Lease(client, keys.actor_lease(0)).acquire("actor 0") as lease:
        yield lease


@pytest.fixture
def reporter(client: Client, keys: Keys, lease: Lease) -> EpisodeReporter:
    return EpisodeReporter(Sender(client, keys, 0, lease.token, begin(client, keys, 64).epoch))


def test_each_episode_arrives_once(
    client: Client, keys: Keys, reporter: EpisodeReporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is sent again after a lost reply counts once; readers go on where they were."""
    for sequence in (1, 2, 2, 1, 3):
        reporter.report(episode_of(sequence))
    monkeypatch.setattr(reports, "EPISODES_PER_READ", 2)
    after, episodes, _ = read_episodes(client, keys, "0-0")
    assert episodes == [episode_of(1), episode_of(2)]
    after, episodes, _ = read_episodes(client, keys, after)
    assert episodes == [episode_of(3)]
    assert read_episodes(client, keys, after) == (after, [], 0)


def test_large_episodes_take_no_more_memory_than_small_ones(
    client: Client, keys: Keys, reporter: EpisodeReporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episodes, "KEPT_BYTES", 200_000)
    for sequence in range(1, 101):
        reporter.report(episode_of(sequence)._replace(rooms=[sequence] * 2000))
    held = read_episodes(client, keys, "0-0").episodes
    assert 15 <= len(held) <= 30 and held[-1].sequence == 100


def test_episodes_of_an_older_version_lack_what_was_added_since(client: Client, keys: Keys) -> None:
    """Such a run, gone on with, has them in its stream."""
    client.xadd(keys.episodes, {"episode": "[0, 1, 1, 100, 80, 1.5, 2.5, 3.5, 9]"})
    _, (episode,), _ = read_episodes(client, keys, "0-0")
    assert (episode.length, episode.evaluation, episode.action_counts) == (9, False, ())


def test_a_successor_goes_on_counting(
    client: Client, keys: Keys, lease: Lease, reporter: EpisodeReporter
) -> None:
    reporter.report(episode_of(1))
    assert EpisodeReporter(Sender(client, keys, 0, lease.token, reporter.epoch)).sequence == 1
    assert EpisodeReporter(Sender(client, keys, 1, lease.token, reporter.epoch)).sequence == 0


def test_a_stale_epoch_is_refused_until_adopted(
    client: Client, keys: Keys, reporter: EpisodeReporter
) -> None:
    epoch = begin(client, keys, 64, keep=True).epoch
    with pytest.raises(StaleEpoch):
        reporter.report(episode_of(1))
    reporter.epoch = epoch
    reporter.report(episode_of(1))
    assert read_episodes(client, keys, "0-0").episodes == [episode_of(1)]


def test_a_lost_lease_is_refused(client: Client, keys: Keys, lease: Lease, reporter: EpisodeReporter) -> None:
    client.set(lease.key, "another")
    with pytest.raises(LostLease):
        reporter.report(episode_of(1))
    assert read_episodes(client, keys, "0-0") == ("0-0", [], 0)
