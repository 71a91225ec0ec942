"""Event logs whose checksums are right and whose contents are not: refused or counted, in a sentence."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from event_log.__main__ import main
from event_log.reader import read_episodes, read_header, read_pieces
from event_log.records import MAGIC, PREFIX, EventLogError, LogHeader, _framed
from event_log.writer import EventLogWriter
from memory.chunks.codec import DTYPES
from memory.chunks.decoding import Packed, unpack
from memory.chunks.encoding import pack
from tests.memory.logged import PIXELS, VECTORS, write_log

CASES = int(os.environ.get("FUZZ_CASES", "400"))
fuzzed = settings(
    max_examples=CASES,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def _records(path: Path) -> list[Packed]:
    data, at, found = path.read_bytes(), len(MAGIC), []
    while at < len(data):
        size, _ = PREFIX.unpack_from(data, at)
        at += PREFIX.size
        found.append(unpack(data[at : at + size]))
        at += size
    return found


def _write(path: Path, records: list[Packed]) -> None:
    path.write_bytes(MAGIC + b"".join(_framed(pack(*record, "zstd")) for record in records))


with tempfile.TemporaryDirectory() as folder:
    LOGS = []
    for number, header in enumerate((PIXELS, VECTORS)):
        write_log(Path(folder) / "log", header, seed=number, environments=2, each=2, piece_steps=9)
        LOGS.append(_records(Path(folder) / "log"))
        (Path(folder) / "log").unlink()

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([-1, 0, 1, 2, 99]),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["uint8", "float32", "abc"]),
    st.lists(st.integers(0, 9), max_size=3),
)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Of any kind that the format knows."""
    shape = draw(st.one_of(st.lists(st.integers(0, 4), max_size=4), st.just([9, 3, 2]), st.just([9, 4])))
    dtype = np.dtype(draw(st.sampled_from(sorted(DTYPES))))
    values = draw(
        st.lists(st.sampled_from([0, 1, 2, 99, -1, np.nan, np.inf, 1e300, 2**40]), min_size=1, max_size=4)
    )
    with np.errstate(all="ignore"):
        return np.resize(np.array(values), shape).astype(dtype)


@st.composite
def hostile_logs(draw: st.DrawFn) -> list[Packed]:
    """A real log, some of whose values are others or are missing."""
    records = [Packed(dict(meta), dict(columns)) for meta, columns in draw(st.sampled_from(LOGS))]
    for _ in range(draw(st.integers(1, 4))):
        meta, columns = records[draw(st.one_of(st.just(0), st.integers(0, len(records) - 1)))]
        place: dict[str, Any] = draw(st.sampled_from([meta, columns]))
        name = draw(
            st.one_of(st.sampled_from(sorted(place) or ["none"]), st.sampled_from(["num_actions", "a_t"]))
        )
        if draw(st.booleans()):
            place.pop(name, None)
        else:
            place[name] = draw(arrays() if place is columns else scalars)
    if draw(st.booleans()):
        records[1:] = draw(st.permutations(records[1:]))
    return records


@pytest.mark.slow
@given(hostile_logs(), st.sampled_from(["", "--per-episode", "--nth 2 --img-output-dir"]))
@fuzzed
def test_whatever_a_log_holds_is_sound_or_refused(records: list[Packed], words: str) -> None:
    """By a sentence and exit code 2; what is read belongs to the environment that its header names."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        _write(path, records)
        more = [*words.split(), *([f"{folder}/pictures"] if "dir" in words else [])]
        try:
            main([str(path), *more])
            event("read")
        except SystemExit as ending:
            assert ending.code == 2
            event("refused")
        try:
            header = read_header(path)
        except EventLogError:
            return
        for episode in read_episodes(path):
            assert (
                episode.frames.shape[1:] == header.frame_shape and episode.frames.dtype == header.frame_dtype
            )
            assert np.isfinite(episode.r_t).all() and np.isfinite(episode.frames).all()
            assert len(episode.frames) - len(episode.r_t) in (0, 1) and len(episode.a_t) == len(episode.r_t)
            assert (
                episode.a_t >= (0 if header.action_low is None else np.array(header.action_low, np.float32))
            ).all()
            assert header.num_actions is None or (episode.a_t < header.num_actions).all()
        EventLogWriter(path, header).close()


def _changed(header: LogHeader, changes: dict[str, Callable[[Any], Any]], folder: Path) -> Path:
    """A log of a real one whose first piece is changed."""
    path = folder / "log"
    write_log(path, header, seed=3, environments=1, each=3)
    records = _records(path)
    meta, columns = records[1]
    for name, change in changes.items():
        place: dict[str, Any] = columns if name in columns else meta
        place[name] = change(place[name])
    _write(path, records)
    return path


@pytest.mark.parametrize(
    ("header", "column", "change", "said"),
    [
        (PIXELS, "frames", lambda frames: frames[:, :2], "1 with frames of another shape"),
        (VECTORS, "frames", lambda frames: frames * np.nan, "1 with frames that are not finite"),
        (PIXELS, "frames", lambda frames: frames[:-1], "1 that end an episode without its last frame"),
        (PIXELS, "a_t", lambda a_t: np.full_like(a_t, 99), "1 with actions out of range"),
        (PIXELS, "r_t", lambda r_t: np.full_like(r_t, np.nan), "1 with rewards that are not finite"),
        (PIXELS, "r_t", lambda r_t: r_t[:-1], "1 with more frames than steps, or fewer"),
        (PIXELS, "episode", lambda _: "abc", "1 with impossible numbers"),
    ],
)
def test_pieces_that_cannot_be_are_counted_and_left_out(
    header: LogHeader,
    column: str,
    change: Callable[[Any], Any],
    said: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = _changed(header, {column: change}, tmp_path)
    assert {piece.episode for piece in read_pieces(path)} == {1, 2}
    assert f"These records of {path} are left out: {said}" in caplog.text


def test_a_header_that_cannot_be_is_a_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log"
    write_log(path, PIXELS, seed=3, environments=1, each=1)
    whole = _records(path)
    for name in ("format", "game", "dtype", "frames_per_step", "num_actions", "code"):
        records = [Packed({**whole[0].meta, name: 5}, whole[0].columns), *whole[1:]]
        if name != "code":  # those of earlier versions have none
            del records[0].meta[name]
        _write(path, records)
        with caplog.at_level(logging.ERROR), pytest.raises(SystemExit) as ending:
            caplog.clear()
            main([str(path)])
        assert ending.value.code == 2 and len(caplog.records) == 1, name
        assert str(path) in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("frames_per_step", 0, "with no number of frames per step"),
        ("frame_shape", [0, 4], "with an impossible shape of frames"),
        ("frame_shape", [1 << 20, 1 << 20], "with an impossible shape of frames"),
    ],
)
def test_a_header_whose_numbers_cannot_be_is_refused(
    name: str, value: Any, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    write_log(path, PIXELS, seed=3, environments=1, each=1)
    (meta, columns), *pieces = _records(path)
    if name in columns:
        columns = {**columns, name: np.array(value, np.int64)}
    else:
        meta = {**meta, name: value}
    _write(path, [Packed(meta, columns), *pieces])
    with pytest.raises(EventLogError, match=said):
        read_header(path)
