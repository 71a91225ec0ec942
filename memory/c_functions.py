"""Functions of C that compiled code calls, out of the packages they come with."""

from __future__ import annotations

import lz4.block
from isal import isal_zlib
from numba import types

from compiled import external

init_lz4_stream = external(
    lz4.block._block.__file__,
    "LZ4_initStream",  # (stream, its bytes) -> stream, or 0
    types.intp(types.voidptr, types.uint64),
)
compress_lz4 = external(
    lz4.block._block.__file__,
    "LZ4_compress_fast_continue",  # (stream, source, target, bytes of source, room, 1) -> bytes written, or 0
    types.int32(types.voidptr, types.voidptr, types.voidptr, types.int32, types.int32, types.int32),
)
decompress_lz4 = external(
    lz4.block._block.__file__,
    "LZ4_decompress_safe",  # (source, target, bytes of source, bytes of target) -> bytes written, or < 0
    types.int32(types.voidptr, types.voidptr, types.int32, types.int32),
)
crc32 = external(
    isal_zlib.__file__,
    "crc32_gzip_refl",  # (checksum so far, first byte, bytes) -> checksum
    types.uint32(types.uint32, types.voidptr, types.uint64),
)
