"""The command line of event logs, on logs of real environments."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest

from event_log.__main__ import main
from event_log.reader import read_episodes
from event_log.records import LogHeader
from tests.memory.logged import PIXELS, VECTORS, write_log
from tests.processes import ONE_THREAD, ROOT, until
from tests.recording import Play, record

COLOURS = LogHeader("colours", (6, 5, 3), "uint8", 3, None, None)


def _rewards(play: Play) -> Counter[float]:
    return Counter(float(reward) for step in play.steps for reward in step.rewards[step.active])


def _rows(printed: str) -> dict[float, tuple[float, int]]:
    """Value -> (share, count) of the table in `printed`, whose rows must go down."""
    lines = [line.split() for line in printed.partition("share")[2].splitlines()[1:]]
    values = [float(line[2]) for line in lines]
    assert values == sorted(values, reverse=True)
    return {value: (float(share), int(count)) for (share, count, _), value in zip(lines, values, strict=True)}


@pytest.mark.parametrize(("game", "steps", "environments"), [("probe:catch", 98, 3), ("pong", 150, 1)])
def test_counts_and_rewards_of_a_real_game(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], game: str, steps: int, environments: int
) -> None:
    play = record(tmp_path / "log", game, steps, environments)
    ended = sum(int((step.terminated | step.truncated).sum()) for step in play.steps)
    last = play.steps[-1]
    begun = ended + int((last.active & ~last.terminated & ~last.truncated).sum())
    rewards = _rewards(play)
    main([str(tmp_path / "log")])
    printed = capsys.readouterr().out
    assert printed.startswith(f"read {begun} episodes for a total of {rewards.total()} events\n")
    assert f"left out of lengths and scores: {begun - ended}" in printed
    expected = {value: (round(n / rewards.total(), 5), n) for value, n in rewards.items()}
    assert _rows(printed) == expected


def test_scores_of_chosen_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "log", "probe:catch", 100)
    scores = [episode.r_t.sum() for episode in read_episodes(tmp_path / "log")]
    assert len(scores) == 10
    main([str(tmp_path / "log"), "--per-episode", "--episodes", "1,3-6"])
    printed = capsys.readouterr().out
    chosen = Counter([scores[number] for number in (1, 3, 4, 5, 6)])
    assert _rows(printed) == {score: (n / 5, n) for score, n in chosen.items()}
    assert f"score {np.mean(list(chosen.elements())):14.2f}{min(chosen):14g}{max(chosen):14g}" in printed


def test_many_values_are_counted_in_bins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = write_log(tmp_path / "log", VECTORS, seed=1)
    main([str(tmp_path / "log")])
    rows = [line.split() for line in capsys.readouterr().out.partition("share")[2].splitlines()[1:]]
    assert len(rows) == 20
    assert sum(int(row[1]) for row in rows) == sum(len(episode.r_t) for episode in written)
    assert float(rows[0][4]) == pytest.approx(max(episode.r_t.max() for episode in written), rel=1e-2)


@pytest.mark.parametrize("header", [PIXELS, COLOURS])
def test_pictures_are_the_frames_and_say_what_was_done(tmp_path: Path, header: LogHeader) -> None:
    write_log(tmp_path / "log", header, seed=2)
    main(f"{tmp_path / 'log'} --episodes 2,4 --nth 3 --img-output-dir {tmp_path / 'pictures'}".split())
    names = set()
    for episode in read_episodes(tmp_path / "log", {2, 4}):
        for step in range(0, len(episode.frames), 3):
            deed = "end"
            if step < len(episode.r_t):
                deed = f"action_{episode.a_t[step]}_reward_{episode.r_t[step]:g}"
            name = f"episode_{episode.number:05d}_step_{step:06d}_{deed}.png"
            picture = cv2.imread(str(tmp_path / "pictures" / name))
            assert picture is not None, name
            frame = episode.frames[step] if header is COLOURS else episode.frames[step][..., None]
            np.testing.assert_array_equal(picture[..., ::-1], np.broadcast_to(frame, picture.shape))
            names.add(name)
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == names


def test_a_film_shows_every_frame_with_words_under_it(tmp_path: Path) -> None:
    record(tmp_path / "log", "probe:catch", 25)
    main([str(tmp_path / "log"), "--film", str(tmp_path / "films" / "film.mp4"), "--fps", "5"])
    film = cv2.VideoCapture(str(tmp_path / "films" / "film.mp4"))
    assert film.get(cv2.CAP_PROP_FPS) == 5
    shown = []
    while (picture := film.read()[1]) is not None:
        shown.append(picture)
    episodes = list(read_episodes(tmp_path / "log"))
    frames = np.concatenate([episode.frames for episode in episodes])
    assert len(shown) == len(frames)
    for picture, frame in zip(shown, frames, strict=True):
        words = picture[-40:]
        scale = picture.shape[1] // 5
        cells = picture[:-40][scale // 2 :: scale, scale // 2 :: scale, 0]
        np.testing.assert_array_equal(cells > 128, frame > 128)
        assert (words > 128).any()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("{vectors} --img-output-dir {folder}", "There is no picture in .*float32 of shape"),
        ("{vectors} --film {folder}/film.mp4", "There is no picture in"),
        ("{pixels} --film {folder}/film.avi", "does not end in .mp4"),
        ("{pixels} --film /proc/film.mp4", "cannot be written"),
        ("{pixels} --img-output-dir {pixels}", "cannot be written"),
        ("{pixels} --episodes 4,100-200", "holds no episode 100-200"),
        ("{pixels} --episodes three", "does not name episodes as 3,7-9 does"),
        ("{pixels} --nth 0", "0 is no whole number of 1 or more"),
        ("{pixels} --nth 2", "--nth goes with"),
        ("{folder}/nothing", "cannot be read: No such file"),
        (f"{ROOT}/LICENSE", "is not an event log"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    words: str,
    sentence: str,
) -> None:
    pixels, vectors = tmp_path / "pixels", tmp_path / "vectors"
    write_log(pixels, PIXELS, seed=3, each=3)
    write_log(vectors, VECTORS, seed=4, each=1)
    with pytest.raises(SystemExit) as ending:
        main(words.format(pixels=pixels, vectors=vectors, folder=tmp_path).split())
    assert ending.value.code == 2
    said = caplog.text + capsys.readouterr().err
    assert re.search(sentence, said), said
    assert not list(tmp_path.rglob("*.mp4"))


def test_as_a_process_on_a_log_that_was_broken_off(tmp_path: Path) -> None:
    """The tail is named on standard error; what precedes it is counted."""
    record(tmp_path / "log", "probe:catch", 33)
    data = (tmp_path / "log").read_bytes()
    (tmp_path / "log").write_bytes(data[:-5])
    command = [sys.executable, "-m", "event_log", str(tmp_path / "log")]
    done = subprocess.run(command, cwd=ROOT, env=ONE_THREAD, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("read 3 episodes for a total of 27 events\n")
    assert "no whole record: they are left out" in done.stderr


def test_ctrl_c_ends_it_with_a_word(tmp_path: Path) -> None:
    """It reads a pipe, into which nobody writes."""
    os.mkfifo(tmp_path / "pipe")
    process = subprocess.Popen(
        [sys.executable, "-m", "event_log", str(tmp_path / "pipe")],
        cwd=ROOT,
        env=ONE_THREAD,
        stderr=subprocess.PIPE,
        text=True,
    )
    writers: list[int] = []

    def is_read() -> bool:
        with suppress(OSError):  # until somebody reads
            writers.append(os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK))
        return bool(writers)

    until(is_read, lambda: "it does not read")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    os.close(writers[0])
    assert (process.returncode, said.strip()) == (130, "Interrupted.")


def test_a_minari_dataset_holds_the_log_or_a_sentence_says_what_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minari is an optional package."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    written = write_log(tmp_path / "log", VECTORS, seed=5)
    words = [str(tmp_path / "log"), "--minari", "swing/random-v0"]
    if find_spec("minari") is None:
        with pytest.raises(SystemExit):
            main(words)
        assert "--minari needs two more packages" in caplog.text
        return
    main(words)
    dataset = import_module("minari").load_dataset("swing/random-v0")
    for found, episode in zip(dataset.iterate_episodes(), written, strict=True):
        np.testing.assert_array_equal(found.observations, episode.frames)
        np.testing.assert_array_equal(found.actions, episode.a_t)
        np.testing.assert_array_equal(found.rewards, episode.r_t)
        assert found.terminations[-1] == episode.terminated
        assert found.truncations[-1] == (not episode.terminated)
