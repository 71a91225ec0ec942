"""Arrays to bytes and back, and nothing else accepted."""

from __future__ import annotations

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernels.layouts import PREFIX_BYTES
from memory.chunks.codec import DTYPES, PREFIX, CodecError
from memory.chunks.decoding import unpack
from memory.chunks.encoding import COMPRESSIONS, pack

ARRAYS = hnp.arrays(
    dtype=st.sampled_from(sorted(DTYPES)).map(np.dtype),
    shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)


@settings(max_examples=60, deadline=None)
@given(
    columns=st.dictionaries(st.text(max_size=8), ARRAYS, max_size=4),
    compression=st.sampled_from(sorted(COMPRESSIONS)),
)
def test_round_trip(columns, compression) -> None:  # type: ignore[no-untyped-def]
    """Any arrays of the allowed dtypes come back equal, with their shapes, dtypes and meta."""
    packed = unpack(pack({"actor": 3, "run": "x"}, columns, compression))
    assert packed.meta == {"actor": 3, "run": "x"}
    assert list(packed.columns) == list(columns)
    for name, array in columns.items():
        assert packed.columns[name].dtype == array.dtype
        np.testing.assert_array_equal(packed.columns[name], array)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200))
def test_noise_is_refused(data: bytes) -> None:
    """Bytes that nobody packed raise CodecError and nothing else."""
    with pytest.raises(CodecError):
        unpack(data)


@pytest.mark.parametrize("shape", [[1 << 40], [1 << 20, 1 << 20], [-1], ["x"]])
def test_claimed_sizes_are_checked_before_memory_is_taken(shape: list[object]) -> None:
    """A small value that claims to be huge is refused."""
    import zlib

    header = msgpack.packb([{}, [["frames", "|u1", shape]]])
    body = b"x" * 100
    data = (
        PREFIX.pack(b"RC", 1, 1, len(header), 1 << 27, zlib.crc32(body, zlib.crc32(header))) + header + body
    )
    with pytest.raises(CodecError):
        unpack(data)


def test_what_no_reader_accepts_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    column = {"bytes": np.zeros(1000, np.uint8)}
    monkeypatch.setattr("memory.chunks.codec.MAX_RAW_BYTES", 1000)
    assert len(unpack(pack({}, column)).columns["bytes"]) == 1000
    monkeypatch.setattr("memory.chunks.codec.MAX_RAW_BYTES", 999)
    with pytest.raises(ValueError, match="more than any reader accepts"):
        pack({}, column)


def test_compiled_code_knows_how_values_begin() -> None:
    """It may use no constants of other files."""
    assert PREFIX.size == PREFIX_BYTES
