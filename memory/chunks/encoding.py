"""Arrays to bytes (`memory.chunks.codec`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import lz4.block
import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from memory.chunks import codec
from memory.chunks.schema import packed_header

COMPRESSIONS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (codec.PLAIN, bytes),
    "lz4": (codec.LZ4, partial(lz4.block.compress, store_size=False)),
    "zstd": (codec.ZSTD, lambda raw: codec.ZSTD_OF_THREAD.compressor.compress(raw)),
}


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
        (name, array.dtype, codec.REST if name == rest else array.shape)
        for name, array in zip(columns, arrays, strict=True)
    )
    return sealed(packed_header(meta, kinds), arrays, compression)


def sealed(header: bytes, columns: Sequence[NDArray[Any]], compression: str = "lz4") -> bytes:
    """Packed bytes of a header and contiguous `columns`. ValueError for more than any reader accepts."""
    raw = b"".join([column.data for column in columns])
    if len(raw) > codec.MAX_RAW_BYTES:
        raise ValueError(
            f"{len(raw):,} bytes are more than any reader accepts, {codec.MAX_RAW_BYTES:,}: use shorter"
            " chunks (--chunk-length) or rollouts (--rollout-length)."
        )
    code, compress = COMPRESSIONS[compression]
    body = compress(raw)
    sizes, checksum = (len(header), len(raw)), crc32(body, crc32(header))
    return codec.PREFIX.pack(codec.MAGIC, codec.VERSION, code, *sizes, checksum) + header + body
