"""The header of packed arrays (`memory.chunks.codec`): their origin; each column's name, dtype and shape.

Headers that are read are not trusted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from memory.chunks.codec import DTYPES, MAX_DIMENSIONS, REST, CodecError, Kinds, Meta

PAIR = msgpack.Packer().pack_array_header(2)
WRONG_SIZE = "The header does not describe the %d bytes that the body holds."


def packed_header(meta: Mapping[str, int | float | str], kinds: Kinds) -> bytes:
    """The header of a body with columns of these `kinds`."""
    return b"".join((PAIR, msgpack.packb(dict(meta)), _packed_columns(kinds)))


@lru_cache(maxsize=1024)
def _packed_columns(kinds: Kinds) -> bytes:
    """The second part of a header; cached, as an actor's values have few different ones."""
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
    """A header, read: where the bytes come from, and the columns of their body."""

    meta: Meta
    columns: list[Column]
    described: int  # bytes of the columns, but for the rest

    def check_size(self, raw_size: int) -> None:
        """Raises CodecError where a body of these columns has another size."""
        has_rest = bool(self.columns) and self.columns[-1].shape == REST
        if not (raw_size >= self.described if has_rest else raw_size == self.described):
            raise CodecError(WRONG_SIZE % raw_size)


def read_header(header: bytes) -> Header:
    """The header in these bytes; raises CodecError where it is none."""
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
