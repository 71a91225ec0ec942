"""An actor's event log holds what its environments did, episode by episode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from event_log.reader import read_episodes, read_header
from event_log.records import LoggedEpisode
from tests.faults.disk import no_file_larger_than
from tests.recording import Play, header_of, record


def _check_row(play: Play, row: int, episodes: list[LoggedEpisode]) -> None:
    """Episode after episode against the vector steps, straight from the contract of NEXT_STEP autoreset."""
    wanted = iter(episodes)
    frames, actions, rewards = [], [], []
    for step in play.steps:
        frames.append(step.frames[row])
        if step.active[row]:
            actions.append(step.a_t[row])
            rewards.append(step.rewards[row])
            ended = step.terminated[row], step.truncated[row]
        else:
            _check(next(wanted), frames, actions, rewards, ended)
            frames, actions, rewards = [], [], []
    if rewards:
        _check(next(wanted), [*frames, play.frames[row]], actions, rewards, ended)
    assert next(wanted, None) is None


def _check(episode: LoggedEpisode, frames, actions, rewards, ended) -> None:  # type: ignore[no-untyped-def]
    np.testing.assert_array_equal(episode.frames, np.stack(frames))
    np.testing.assert_array_equal(episode.a_t, np.stack(actions))
    np.testing.assert_array_equal(episode.r_t, np.array(rewards))
    assert (episode.terminated, episode.truncated) == ended


@pytest.mark.parametrize(
    ("game", "steps", "environments"),
    [
        ("probe:catch", 44, 3),
        ("probe:catch", 9, 1),
        ("probe:catch", 10, 1),
        ("pong", 40, 1),
        ("Pendulum-v1", 230, 2),
    ],
)
def test_a_log_holds_every_step_and_frame(tmp_path: Path, game: str, steps: int, environments: int) -> None:
    """Also of a stop just after an episode's last step (9) and just after its restart (10)."""
    play = record(tmp_path / "log", game, steps, environments)
    episodes = list(read_episodes(tmp_path / "log"))
    assert read_header(tmp_path / "log") == header_of(game)
    for row in range(environments):
        _check_row(play, row, [episode for episode in episodes if episode.environment == row])


def test_where_the_disk_is_full_the_log_ends_and_the_actor_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with no_file_larger_than(2000):
        play = record(tmp_path / "log", "probe:catch", 400)
    episodes = list(read_episodes(tmp_path / "log"))
    logged = sum(len(episode.r_t) for episode in episodes)
    assert 0 < logged < 300 and (episodes[0].frames[0] == play.steps[0].frames[0]).all()
    assert [record.message for record in caplog.records if "ends here" in record.message] == [
        f"The event log {tmp_path / 'log'} ends here (File too large); the actor goes on."
    ]
    record(tmp_path / "log", "probe:catch", 20)
    assert sum(len(episode.r_t) for episode in read_episodes(tmp_path / "log")) > logged
