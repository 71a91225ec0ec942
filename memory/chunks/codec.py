"""The format of packed arrays, never pickle: what every chunk, rollout and event log is stored as.

Layout: `magic(2) version(1) compression(1) header_size(4) raw_size(4) checksum(4) header body`, little-
endian. The header is msgpack `[meta, [[name, dtype, shape], ...]]`; the body is all columns, one after the
other, compressed as a whole; a last column of bytes may have the shape `[-1]`, which is the rest of the body,
so that values alike have one header; the checksum is CRC-32 of header and body.
`memory.chunks.schema` writes and reads headers, `memory.chunks.encoding` makes the whole value, and
`memory.chunks.decoding` opens it.
"""

from __future__ import annotations

import struct
import threading
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

MAGIC = b"RC"
VERSION = 1
PREFIX = struct.Struct("<2sBBIII")
MAX_RAW_BYTES = 1 << 28
"""Largest body of a chunk once decompressed, 256 MiB: far above any chunk (one of 16 Atari transitions has 16
kB), far below what hurts a machine.
"""
MAX_DIMENSIONS = 8
DTYPES = frozenset({"|u1", "|b1", "<u2", "<u4", "<i4", "<i8", "<f4", "<f8"})

Meta = dict[str, int | float | str]
Columns = dict[str, NDArray[Any]]
Kinds = tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]
"""Name, dtype and shape of every column; REST for one that is the rest of the body."""
REST = (-1,)
"""Stands for the shape of the column that is the rest of the body."""


class CodecError(ValueError):
    """These bytes are not what `memory.chunks.encoding` made, or were damaged on the way."""


PLAIN, LZ4, ZSTD = range(3)
"""Numbers of the compressions of a body."""


class _Zstd(threading.local):
    """Zstandard's working memory, kept by each thread: to make it takes longer than to pack a chunk."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=-1)
        self.decompressor = zstandard.ZstdDecompressor()


ZSTD_OF_THREAD = _Zstd()
