"""Arrays to bytes and back, never pickle: what every chunk, rollout and event log is packed with.

Layout: `magic(2) version(1) compression(1) header_size(4) raw_size(4) checksum(4) header body`, little-
endian. The header is msgpack `[meta, [[name, dtype, shape], ...]]`; the body is all columns, one after the
other, compressed as a whole; a last column of bytes may have the shape `[-1]`, which is the rest of the body,
so that values alike have one header; the checksum is CRC-32 of header and body. Bytes are not trusted: sizes
are bounded before anything is allocated.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import lz4.block
import msgpack
import numpy as np
import zstandard
from isal.isal_zlib import crc32
from numpy.typing import NDArray

MAGIC = b"RC"
VERSION = 1
PREFIX = struct.Struct("<2sBBIII")
MAX_RAW_BYTES = 1 << 28
"""256 MiB: far above any chunk (one of 16 Atari transitions has 16 kB), far below what hurts a machine."""
MAX_DIMENSIONS = 8
DTYPES = frozenset({"|u1", "|b1", "<u2", "<u4", "<i4", "<i8", "<f4", "<f8"})

Meta = dict[str, int | float | str]
Columns = dict[str, NDArray[Any]]
Kinds = tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]
"""Name, dtype and shape of every column; REST for one that is the rest of the body."""
PAIR = msgpack.Packer().pack_array_header(2)
REST = (-1,)
"""Shape of a column that is the rest of the body."""


class Description(Protocol):
    """What a header says."""

    def fits(self, raw_size: int) -> bool:
        """Whether a body may be of this size, in bytes."""


DescriptionT = TypeVar("DescriptionT", bound=Description)


class CodecError(ValueError):
    """These bytes are not what `pack` made, or were damaged on the way."""


class Packed(NamedTuple):
    """What `unpack` found."""

    meta: Meta
    columns: Columns


def _lz4(raw: bytes) -> bytes:
    return bytes(lz4.block.compress(raw, store_size=False))


def _un_lz4(body: memoryview, raw_size: int) -> bytes:
    return bytes(lz4.block.decompress(body, uncompressed_size=raw_size))


class _Zstd(threading.local):
    """Zstandard's working memory, kept by each thread: to make it takes longer than to pack a chunk."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=-1)
        self.decompressor = zstandard.ZstdDecompressor()


_ZSTD = _Zstd()


def _zstd(raw: bytes) -> bytes:
    return _ZSTD.compressor.compress(raw)


def _un_zstd(body: memoryview, raw_size: int) -> bytes:
    if zstandard.frame_content_size(body) != raw_size:  # what it says is allocated before a byte is read
        raise ValueError("it says another size itself")
    return bytes(_ZSTD.decompressor.decompress(body, max_output_size=raw_size))


PLAIN, LZ4, ZSTD = range(3)
COMPRESSIONS: dict[str, tuple[int, Callable[[bytes], bytes], Callable[[memoryview, int], bytes]]] = {
    "none": (PLAIN, lambda raw: raw, lambda body, _: bytes(body)),
    "lz4": (LZ4, _lz4, _un_lz4),
    "zstd": (ZSTD, _zstd, _un_zstd),
}
BEGINNINGS = {code: int.from_bytes((*MAGIC, VERSION, code), "little") for code, _, _ in COMPRESSIONS.values()}
"""The first four bytes of what is packed so, as a number."""
_DECOMPRESS = {code: decompress for code, _, decompress in COMPRESSIONS.values()}


def pack(
    meta: Mapping[str, int | float | str],
    columns: Mapping[str, NDArray[Any]],
    compression: str = "lz4",
    rest: str | None = None,
) -> bytes:
    """Bytes that hold `meta` and all `columns` (any shapes, dtypes of DTYPES); `rest`: the last of them, of
    bytes, whose length the header leaves out.
    """
    arrays = [np.ascontiguousarray(column) for column in columns.values()]
    kinds = tuple(
        (name, array.dtype, REST if name == rest else array.shape)
        for name, array in zip(columns, arrays, strict=True)
    )
    return sealed(packed_header(meta, kinds), arrays, compression)


def sealed(header: bytes, columns: Sequence[NDArray[Any]], compression: str = "lz4") -> bytes:
    """Packed bytes of a header and its `columns`, which are contiguous. Raises ValueError where no reader
    accepts so many bytes.
    """
    raw = b"".join([column.data for column in columns])
    if len(raw) > MAX_RAW_BYTES:
        raise ValueError(
            f"{len(raw):,} bytes are more than any reader accepts, {MAX_RAW_BYTES:,}: use shorter chunks"
            " (--chunk-length) or rollouts (--rollout-length)."
        )
    code, compress, _ = COMPRESSIONS[compression]
    body = compress(raw)
    checksum = crc32(body, crc32(header))
    return b"".join((PREFIX.pack(MAGIC, VERSION, code, len(header), len(raw), checksum), header, body))


def packed_header(meta: Mapping[str, int | float | str], kinds: Kinds) -> bytes:
    """What stands before a body of columns of these `kinds`."""
    return b"".join((PAIR, msgpack.packb(dict(meta)), _packed_schema(kinds)))


@lru_cache(maxsize=1024)
def _packed_schema(kinds: Kinds) -> bytes:
    """The second part of a header. Values of one origin have few different ones."""
    return bytes(msgpack.packb([[name, dtype.str, shape] for name, dtype, shape in kinds]))


class Column(NamedTuple):
    """Where an array lies among all columns of a body."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int  # of its first byte

    def array(self, raw: bytes) -> NDArray[Any]:
        """This column of a body, as a read-only view."""
        shape = (len(raw) - self.offset,) if self.shape == REST else self.shape
        return np.ndarray(shape, self.dtype, raw, self.offset)


class Header(NamedTuple):
    """What stands before the body."""

    meta: Meta
    columns: list[Column]
    described: int  # bytes of the columns, but for the rest

    @property
    def has_rest(self) -> bool:
        """Whether the last column is the rest of the body."""
        return bool(self.columns) and self.columns[-1].shape == REST

    def fits(self, raw_size: int) -> bool:
        """Whether the columns make up a body of this size."""
        return raw_size >= self.described if self.has_rest else raw_size == self.described


def unpack(data: bytes | memoryview) -> Packed:
    """The meta and columns (read-only views of one buffer) in `data`; raises CodecError on anything
    unexpected.
    """
    header, raw = open_packed(data, _known_header)
    try:
        columns = {column.name: column.array(raw) for column in header.columns}
    except ValueError as error:  # an empty column may name any size
        raise CodecError(f"The columns cannot be read: {error}") from error
    return Packed(dict(header.meta), columns)


def open_packed(
    data: bytes | memoryview, described: Callable[[bytes], DescriptionT]
) -> tuple[DescriptionT, bytes]:
    """What `described` makes of the header, and the body, decompressed.

    Raises CodecError where the bytes are damaged, or the header describes a body of another size, before it
    is allocated.
    """
    compression, raw_size, header, body = unsealed(data)
    description = described(header)
    check_size(description, raw_size)
    return description, decompressed(compression, body, raw_size)


def unsealed(data: bytes | memoryview) -> tuple[int, int, bytes, memoryview]:
    """Compression, size of the body as it was, header and body of packed bytes.

    Raises CodecError where they are damaged; header and body are not looked at.
    """
    checked = memoryview(data)[PREFIX.size :]
    if len(data) < PREFIX.size:
        raise CodecError(f"{len(data)} bytes are too few to hold a header of {PREFIX.size}.")
    magic, version, code, header_size, raw_size, checksum = PREFIX.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise CodecError(
            f"Unknown format {magic!r} version {version}; this program reads {MAGIC!r} version {VERSION}."
        )
    if raw_size > MAX_RAW_BYTES or header_size > len(checked) or code not in _DECOMPRESS:
        raise CodecError(f"Refused sizes: header {header_size}, raw {raw_size}, compression {code}.")
    if crc32(checked) != checksum:
        raise CodecError("The checksum does not match: the bytes were damaged.")
    return code, raw_size, bytes(checked[:header_size]), checked[header_size:]


def check_size(description: Description, raw_size: int) -> None:
    """Raises CodecError where the header describes a body of another size."""
    if not description.fits(raw_size):
        raise CodecError(f"The header does not describe the {raw_size} bytes that the body holds.")


def decompressed(compression: int, body: memoryview, raw_size: int) -> bytes:
    """A body, of a size that `check_size` allowed; raises CodecError where it is none."""
    try:
        raw = _DECOMPRESS[compression](body, raw_size)
    except (lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError) as error:
        raise CodecError(f"The body does not decompress: {error}") from error
    if len(raw) != raw_size:
        raise CodecError(f"The body holds {len(raw)} bytes instead of {raw_size}.")
    return raw


def read_header(header: bytes) -> Header:
    """What stands before a body; raises CodecError where it is no header."""
    try:
        meta, rows = msgpack.unpackb(header)
        columns, described = _columns(rows)
    except CodecError:
        raise
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise CodecError(f"The header cannot be read: {error}") from error
    if not isinstance(meta, dict):
        raise CodecError("The header does not say where the columns come from.")
    return Header(meta, columns, described)


_known_header = lru_cache(maxsize=1024)(read_header)
"""Packed values of one origin have few different headers."""


def _columns(rows: list[tuple[str, str, list[int]]]) -> tuple[list[Column], int]:
    """The columns, one after the other, and the bytes of all but the rest."""
    columns, offset = list[Column](), 0
    for place, (name, dtype, shape) in enumerate(rows, 1):
        sizes = isinstance(shape, list) and all(type(n) is int for n in shape)
        is_rest = sizes and tuple(shape) == REST and dtype == "|u1" and place == len(rows)
        sound = sizes and len(shape) <= MAX_DIMENSIONS and (is_rest or min(shape, default=0) >= 0)
        if not (sound and isinstance(name, str) and dtype in DTYPES):
            raise CodecError(f"A column {name!r} of dtype {dtype!r} and shape {shape} is refused.")
        columns.append(Column(name, np.dtype(dtype), tuple(shape), offset))
        offset += 0 if is_rest else math.prod(shape) * np.dtype(dtype).itemsize
    return columns, offset
