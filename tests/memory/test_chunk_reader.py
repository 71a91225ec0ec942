"""Chunks that compiled code opens are read as those that Python opens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memory.chunks import headers as chunk_headers
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import CHANGES, UnsoundRow
from memory.chunks.codec import MAX_RAW_BYTES, PREFIX
from memory.chunks.decoding import unpack
from memory.chunks.encoding import COMPRESSIONS, pack
from memory.chunks.headers import Headers
from memory.chunks.reader import Assembly, ChunkReader
from memory.replay.batch import Batch
from tests.memory.reference import chunk_of, chunk_to_bytes, feed, random_episodes, with_frames
from tests.memory.road import SHAPE

CHUNKS = [
    chunk_of(draft) for draft in feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(3), 200))
]


def _batch(reader: ChunkReader, values: list[bytes], drawn: list[int]) -> Batch:
    assembly = Assembly(reader, len(values), 4)
    assembly.add(values, drawn)
    return assembly.batch(*[np.zeros(len(values))] * 3)


def _packed(actor: int = 0, compression: str = "lz4") -> list[bytes]:
    return [
        pack(*unpack(chunk_to_bytes(chunk, {"actor": actor})), compression, rest=CHANGES) for chunk in CHUNKS
    ]


def _assert_equal(batch: Batch, other: Batch) -> None:
    for one, another in zip(batch[:5], other[:5], strict=True):
        np.testing.assert_array_equal(one, another)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Transitions drawn from the chunks that compiled code did not open."""
    seen = list[int]()
    look_at = Headers.look_at

    def noted(headers: Headers, value: bytes, m: int, *places: int) -> tuple[tuple[int, ...], Any, bytes]:
        seen.append(m)
        return look_at(headers, value, m, *places)

    monkeypatch.setattr(Headers, "look_at", noted)
    return seen


def test_a_header_is_looked_at_once(by_hand: list[int]) -> None:
    values, reader = _packed(), ChunkReader()
    drawn = [at % chunk.transitions for at, chunk in enumerate(CHUNKS)]
    first = _batch(reader, values, drawn)
    assert by_hand
    by_hand.clear()
    _assert_equal(_batch(reader, values, drawn), first)
    assert not by_hand


def test_bodies_of_all_compressions_lie_in_one_batch(by_hand: list[int]) -> None:
    """Those of Zstandard are unpacked by Python, between others."""
    names = [*COMPRESSIONS, *COMPRESSIONS]
    values = [_packed(compression=name)[at] for at, name in enumerate(names)]
    reader, drawn = ChunkReader(), [0] * len(values)
    expected = _batch(reader, _packed()[: len(values)], drawn)
    by_hand.clear()
    _assert_equal(_batch(reader, values, drawn), expected)
    assert len(by_hand) == names.count("zstd")


def test_headers_beyond_those_kept_are_read_all_the_same(
    monkeypatch: pytest.MonkeyPatch, by_hand: list[int]
) -> None:
    """They are looked at each time, and those that are kept are not."""
    reader, drawn = ChunkReader(), [0] * len(CHUNKS)
    expected = _batch(reader, _packed(0), drawn)
    monkeypatch.setattr(chunk_headers, "HEADERS_KEPT", len(reader.headers.known.checksums) + 1)
    for actor in range(1, 9):
        _assert_equal(_batch(reader, _packed(actor), drawn), expected)
    assert len(reader.headers.known.checksums) == chunk_headers.HEADERS_KEPT
    by_hand.clear()
    _batch(reader, _packed(0), drawn)
    assert not by_hand
    _batch(reader, _packed(8), drawn)
    assert by_hand


def test_headers_of_many_actors_are_all_known(by_hand: list[int]) -> None:
    """Whatever the order of their checksums."""
    reader, drawn = ChunkReader(), [0] * len(CHUNKS)
    expected = _batch(reader, _packed(0), drawn)
    for _ in range(2):
        by_hand.clear()
        for actor in range(60):
            _assert_equal(_batch(reader, _packed(actor), drawn), expected)
    assert not by_hand


def test_a_body_that_is_said_to_be_huge_is_refused_under_a_known_header() -> None:
    """Before it is allocated, as under any other."""
    chunk = CHUNKS[0]
    meta, columns = unpack(chunk_to_bytes(with_frames(chunk, np.zeros((4096, 1 << 14), np.float32)), {}))
    columns |= {name: np.zeros((4096, 2), columns[name].dtype) for name in ("rewards", "ended")}
    reader, good = ChunkReader(), pack(meta, columns, rest=CHANGES)
    *fields, size, checksum = PREFIX.unpack_from(good)
    step = 6 * ((MAX_RAW_BYTES - size) // 6 + 1)
    huge = PREFIX.pack(*fields, size + step, checksum) + good[PREFIX.size :]
    _batch(reader, [good], [0])
    with pytest.raises(UnsoundRow, match="Refused sizes"):
        _batch(reader, [huge], [0])


def test_headers_of_one_checksum_are_told_apart(by_hand: list[int]) -> None:
    """Compiled code knows the checksum, but another header under it."""
    values, reader, drawn = _packed(), ChunkReader(), [0] * len(CHUNKS)
    expected = _batch(reader, values, drawn)
    known = reader.headers.known
    reader.headers.known = known._replace(headers=known.headers ^ np.uint8(1))
    by_hand.clear()
    _assert_equal(_batch(reader, values, drawn), expected)
    assert len(by_hand) == len(values)


def test_a_damaged_chunk_is_named_wherever_it_stands() -> None:
    values, reader = _packed(), ChunkReader()
    drawn = [0] * len(values)
    _batch(reader, values, drawn)
    for row in (0, 3, len(values) - 1):
        damaged = bytearray(values[row])
        damaged[-1] ^= 1
        with pytest.raises(UnsoundRow, match="checksum") as caught:
            _batch(reader, [*values[:row], bytes(damaged), *values[row + 1 :]], drawn)
        assert caught.value.row == row
