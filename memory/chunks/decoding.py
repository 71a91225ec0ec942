"""Bytes of `memory.chunks.codec`, back to arrays.

They are not trusted: sizes are bounded before anything is allocated.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import lz4.block
import zstandard
from isal.isal_zlib import crc32

from memory.chunks.codec import (
    LZ4,
    MAGIC,
    MAX_RAW_BYTES,
    PLAIN,
    PREFIX,
    VERSION,
    ZSTD,
    ZSTD_OF_THREAD,
    CodecError,
    Columns,
    Meta,
)
from memory.chunks.schema import read_header


class Packed(NamedTuple):
    """What `unpack` found."""

    meta: Meta
    columns: Columns


def _un_lz4(body: memoryview, raw_size: int) -> bytes:
    return bytes(lz4.block.decompress(body, uncompressed_size=raw_size))


def _un_zstd(body: memoryview, raw_size: int) -> bytes:
    if zstandard.frame_content_size(body) != raw_size:  # what it says is allocated before a byte is read
        raise ValueError("it says another size itself")
    return bytes(ZSTD_OF_THREAD.decompressor.decompress(body, max_output_size=raw_size))


DECOMPRESS = {PLAIN: lambda body, _: bytes(body), LZ4: _un_lz4, ZSTD: _un_zstd}


def unpack(data: bytes | memoryview) -> Packed:
    """The meta and columns (read-only views of one buffer) in `data`; raises CodecError on anything
    unexpected.
    """
    compression, raw_size, header_bytes, body = unsealed(data)
    header = _known_header(header_bytes)
    header.check_size(raw_size)  # before it is allocated
    raw = decompressed(compression, body, raw_size)
    try:
        columns = {column.name: column.array(raw) for column in header.columns}
    except ValueError as error:  # an empty column may name any size
        raise CodecError(f"The columns cannot be read: {error}") from error
    return Packed(dict(header.meta), columns)


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
    if raw_size > MAX_RAW_BYTES or header_size > len(checked) or code not in DECOMPRESS:
        raise CodecError(f"Refused sizes: header {header_size}, raw {raw_size}, compression {code}.")
    if crc32(checked) != checksum:
        raise CodecError("The checksum does not match: the bytes were damaged.")
    return code, raw_size, bytes(checked[:header_size]), checked[header_size:]


def decompressed(compression: int, body: memoryview, raw_size: int) -> bytes:
    """A body, of a size that its header allows; raises CodecError where it is none."""
    try:
        raw = DECOMPRESS[compression](body, raw_size)
    except (lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError) as error:
        raise CodecError(f"The body does not decompress: {error}") from error
    if len(raw) != raw_size:
        raise CodecError(f"The body holds {len(raw)} bytes instead of {raw_size}.")
    return raw


_known_header = lru_cache(maxsize=1024)(read_header)
"""Packed values of one origin have few different headers."""
