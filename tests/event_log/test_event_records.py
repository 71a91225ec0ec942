"""Event logs give back what was written, bit by bit, whatever happened to the process that wrote them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from event_log.reader import read_episodes, read_header, read_pieces
from event_log.records import EventLogError, LoggedEpisode, LogHeader
from event_log.writer import EventLogWriter
from tests.memory.logged import PIXELS, VECTORS, play, random_episode, same, write_log, write_step
from tests.processes import ONE_THREAD, ROOT


@pytest.mark.parametrize("header", [PIXELS, VECTORS])
@pytest.mark.parametrize("piece_steps", [256, 5, 1])
def test_mixed_episodes_come_back_bit_by_bit(tmp_path: Path, header: LogHeader, piece_steps: int) -> None:
    """In pieces of whole episodes, of a few steps, of a single step."""
    written = write_log(tmp_path / "log", header, piece_steps, piece_steps=piece_steps)
    assert read_header(tmp_path / "log") == header
    found = list(read_episodes(tmp_path / "log"))
    for one, other in zip(found, written, strict=True):
        same(one, other)
    chosen = list(read_episodes(tmp_path / "log", {2, 5}))
    assert sorted(episode.number for episode in chosen) == [2, 5]


def test_every_frame_is_kept_once_and_long_episodes_do_not_wait(tmp_path: Path) -> None:
    writer = EventLogWriter(tmp_path / "log", PIXELS)
    frames = np.arange(600 * 6).reshape(600, 3, 2).astype(np.uint8)
    for frame in frames:
        writer.add(0, frame, np.int64(1), 0.5, False, False)
    assert [len(piece.r_t) for piece in read_pieces(tmp_path / "log")] == [256, 256]
    writer.close()
    pieces = list(read_pieces(tmp_path / "log"))
    assert [piece.first_step for piece in pieces] == [0, 256, 512]
    np.testing.assert_array_equal(np.concatenate([piece.frames for piece in pieces]), frames)


def test_a_frame_may_be_overwritten_after_it_was_added(tmp_path: Path) -> None:
    """Environments hand out their buffers."""
    writer = EventLogWriter(tmp_path / "log", PIXELS)
    frame = np.ones((3, 2), np.uint8)
    writer.add(0, frame, np.int64(1), 0.0, True, False)
    frame[:] = 7
    writer.end(0, frame)
    writer.close()
    (episode,) = read_episodes(tmp_path / "log")
    np.testing.assert_array_equal(episode.frames[:, 0, 0], [1, 7])


def test_a_log_cut_anywhere_in_its_last_record_is_used_and_continued(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At every byte of it: what precedes is read, what is left of it is removed before more is appended."""
    path = tmp_path / "log"
    written, (_, whole, _) = _write_one_by_one(path, seed=3, episodes=3)
    data = path.read_bytes()
    more = random_episode(np.random.default_rng(4), PIXELS, 0)
    more = more._replace(frames=more.frames[:2], a_t=more.a_t[:1], r_t=more.r_t[:1])  # shorter than the tail
    for size in range(whole, len(data)):
        path.write_bytes(data[:size])
        caplog.clear()
        assert [episode.number for episode in read_episodes(path)] == [0, 1]
        assert ("no whole record" in caplog.text) == (size > whole)
        caplog.clear()
        writer = EventLogWriter(path, PIXELS)
        assert ("they are removed" in caplog.text) == (size > whole)
        expected = [*written[:2], *play(writer, [more], np.random.default_rng(), begun=2)]
        writer.close()
        for one, other in zip(read_episodes(path), expected, strict=True):
            same(one, other)
        assert "are left out" not in caplog.text


def _write_one_by_one(path: Path, seed: int, episodes: int) -> tuple[list[LoggedEpisode], list[int]]:
    """One environment's episodes, and the size of the file after each."""
    generator, written, sizes = np.random.default_rng(seed), list[LoggedEpisode](), list[int]()
    writer = EventLogWriter(path, PIXELS)
    for number in range(episodes):
        written += play(writer, [random_episode(generator, PIXELS, 0)], generator, begun=number)
        sizes.append(path.stat().st_size)
    writer.close()
    return written, sizes


def test_a_log_cut_in_its_header_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    EventLogWriter(path, PIXELS).close()
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(EventLogError, match="broken off as it began|is not an event log"):
            read_header(path)
        EventLogWriter(path, VECTORS).close()
        assert read_header(path) == VECTORS


@pytest.mark.parametrize("header", [PIXELS, VECTORS])
def test_damage_costs_one_episode_at_most(
    tmp_path: Path, header: LogHeader, caplog: pytest.LogCaptureFixture
) -> None:
    """A flipped bit in a record leaves that episode as far as it is known, and all others whole."""
    path = tmp_path / "log"
    written = {episode.number: episode for episode in write_log(path, header, seed=5, piece_steps=5)}
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found = {episode.number: episode for episode in read_episodes(path)}
    assert "is left out" in caplog.text
    changed = [
        number
        for number in written
        if number not in found or len(found[number].r_t) < len(written[number].r_t)
    ]
    assert len(changed) == 1
    for number in found.keys() - changed:
        same(found[number], written[number])
    for number in found.keys() & changed:
        steps = len(found[number].r_t)
        np.testing.assert_array_equal(found[number].r_t, written[number].r_t[:steps])
        assert not (found[number].terminated or found[number].truncated)


def test_a_log_whose_sizes_are_damaged_is_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "log"
    _, (second, _) = _write_one_by_one(path, seed=6, episodes=2)
    data = bytearray(path.read_bytes())
    data[second] ^= 1
    path.write_bytes(data)
    assert [episode.number for episode in read_episodes(path)] == [0]
    with pytest.raises(EventLogError, match="damaged at byte"):
        EventLogWriter(path, PIXELS)
    assert path.read_bytes() == data


def test_what_does_not_fit_is_refused_and_left_alone(tmp_path: Path) -> None:
    log, letter = tmp_path / "log", tmp_path / "letter"
    write_log(log, PIXELS, seed=7, environments=1, each=1)
    letter.write_text("Dear reader, this is no event log.")
    before = log.read_bytes(), letter.read_bytes()
    with pytest.raises(
        EventLogError,
        match=r"blocks with uint8 frames \(3, 2\), 6 actions and 4 frames per step; .* swing with",
    ):
        EventLogWriter(log, VECTORS)
    with pytest.raises(EventLogError, match="is not an event log"):
        EventLogWriter(letter, PIXELS)
    with pytest.raises(EventLogError, match="is not an event log"):
        list(read_pieces(letter))
    with pytest.raises(EventLogError, match="No such file"):
        read_header(tmp_path / "nothing")
    with pytest.raises(EventLogError, match="does not belong"):
        EventLogWriter(log, PIXELS).add(0, np.zeros((3, 2), np.float32), np.int64(0), 0.0, False, False)
    assert (log.read_bytes(), letter.read_bytes()) == before


def test_a_log_of_another_file_of_the_user_s_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "log", PIXELS._replace(code="b" * 64)
    write_log(path, PIXELS._replace(code="a" * 64), seed=7, environments=1, each=1)
    assert read_header(path).code == "a" * 64
    sentence = r"another blocks, of the SHA-256 a{12}, and it is b{12} here: .* or --changed-code"
    with pytest.raises(EventLogError, match=sentence):
        EventLogWriter(path, other)
    write_log(tmp_path / "earlier", PIXELS, seed=7, environments=1, each=1)
    with pytest.raises(EventLogError, match="of the SHA-256 unknown"):
        EventLogWriter(tmp_path / "earlier", other)


def test_a_log_of_other_arguments_is_refused(tmp_path: Path) -> None:
    """Both are named; a log of an earlier version kept none, and is taken."""
    path, slippery, even = tmp_path / "log", PIXELS._replace(env_args='{"slippery": true}'), PIXELS
    write_log(path, slippery, seed=7, environments=1, each=1)
    assert read_header(path) == slippery
    sentence = r"from blocks --env-args '\{\"slippery\": true\}' with .* played here is blocks with uint8"
    with pytest.raises(EventLogError, match=sentence):
        EventLogWriter(path, even)
    earlier = tmp_path / "earlier"
    write_log(earlier, PIXELS._replace(env_args=None), seed=7, environments=1, each=1)
    assert read_header(earlier).env_args is None
    for header in (even, slippery):
        EventLogWriter(earlier, header).close()


def test_only_one_process_writes(tmp_path: Path) -> None:
    writer = EventLogWriter(tmp_path / "log", PIXELS)
    with pytest.raises(EventLogError, match="Another process is writing"):
        EventLogWriter(tmp_path / "log", PIXELS)
    writer.close()
    EventLogWriter(tmp_path / "log", PIXELS).close()


_ENDLESS = """
import sys
from pathlib import Path
import numpy as np
from event_log.records import LogHeader
from event_log.writer import EventLogWriter
writer = EventLogWriter(Path(sys.argv[1]), LogHeader("noise", (40, 40), "uint8", 256, None, None))
generator = np.random.default_rng(int(sys.argv[2]))
while True:
    for environment in range(3):
        frame = generator.integers(0, 256, (40, 40)).astype(np.uint8)
        if generator.random() < 0.02:
            writer.end(environment, frame)
        writer.add(environment, frame, np.int64(frame[0, 0]), float(frame.sum()), False, False)
"""


def test_what_was_written_before_a_kill_is_there(tmp_path: Path) -> None:
    """SIGKILL at random moments, each successor going on in the same file."""
    path, generator, events = tmp_path / "log", np.random.default_rng(8), 0
    for start in range(4):
        size = path.stat().st_size if start else 0
        command = [sys.executable, "-c", _ENDLESS, str(path), str(start)]
        process = subprocess.Popen(command, cwd=ROOT, env={**ONE_THREAD, "PYTHONPATH": str(ROOT)})
        try:
            deadline = time.monotonic() + 20
            while (not path.exists() or path.stat().st_size < size + 200_000) and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(generator.uniform(0, 0.1))
        finally:
            process.kill()
            process.wait()
        episodes = list(read_episodes(path))
        assert len({episode.number for episode in episodes}) == len(episodes)
        assert sum(len(episode.r_t) for episode in episodes) > events
        events = sum(len(episode.r_t) for episode in episodes)
        _check_noise(episodes)


def _check_noise(episodes: list[LoggedEpisode]) -> None:
    for episode in episodes:
        frames = episode.frames[: len(episode.r_t)].astype(np.int64)
        np.testing.assert_array_equal(episode.a_t, frames[:, 0, 0])
        np.testing.assert_array_equal(episode.r_t, frames.sum((1, 2)))


def test_an_episode_that_a_kill_broke_off_lacks_the_frame_behind_its_last_step(tmp_path: Path) -> None:
    """It shows as soon as its environment begins another, and at the end of the log."""
    generator = np.random.default_rng(9)
    episodes = [random_episode(generator, PIXELS, 0)._replace(number=number) for number in range(2)]
    for episode in episodes:
        writer = EventLogWriter(tmp_path / "log", PIXELS)
        for step in range(len(episode.r_t)):
            write_step(writer, episode, step)
        writer.close()
    for one, other in zip(read_episodes(tmp_path / "log"), episodes, strict=True):
        same(one, other._replace(frames=other.frames[:-1], terminated=False, truncated=False))


def test_the_file_grows_only_at_its_end(tmp_path: Path) -> None:
    """Nothing that was written is ever changed."""
    path = tmp_path / "log"
    for seed in range(3):
        before = path.read_bytes() if path.exists() else b""
        writer = EventLogWriter(path, PIXELS)
        play(writer, [random_episode(np.random.default_rng(seed), PIXELS, 0)], np.random.default_rng())
        writer.close()
        assert path.read_bytes().startswith(before)
        assert path.stat().st_size > len(before)
