"""The replay as a file: every chunk with its priorities, in the order of arrival, each with its own checksum.

The file is a row of records: `size(4)`, little-endian, and so many bytes of `memory.chunks.encoding.pack`.
The first says what the chunks were made with, the last how many there are.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from memory.chunks.chunk import CHANGES, CHUNK_ID, chunk_from_bytes, chunk_id_of
from memory.chunks.codec import CodecError
from memory.chunks.decoding import Packed, unpack
from memory.chunks.encoding import pack
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.push import Packet
from memory.server.connection import Client

SIZE = struct.Struct("<I")
MAX_RECORD_BYTES = 1 << 28
"""Largest record, 256 MiB, as of a chunk when decompressed (memory.chunks.codec)."""
CHUNKS_PER_READ = 256
LEAVES = "leaves"
COLUMNS_FORMAT = 2
"""Version of the columns of a chunk, raised whenever they come to mean something else; 1 had all frames as
they are.
"""

Progress = Callable[[float], None]
"""Told which share is done, from time to time."""


class DumpError(ValueError):
    """A file is no dump of this run's replay, or is damaged; the message is one sentence."""


def dump_records(
    client: Client,
    keys: Keys,
    slots: int,
    layout: Mapping[str, object],
    chunk_length: int,
    progress: Progress,
) -> Iterator[bytes]:
    """The records of a dump; chunks that are damaged, or overwritten meanwhile, are left out."""
    yield _record(pack({"layout": json.dumps(_with_format(layout), sort_keys=True)}, {}, "none"))
    newest = read_counters(client, keys).last_chunk
    first = max(newest - slots, 0) + 1
    count = 0
    for start in range(first, newest + 1, CHUNKS_PER_READ):
        ids = range(start, min(start + CHUNKS_PER_READ, newest + 1))
        for record in _stored(client, keys, ids, slots, chunk_length):
            yield record
            count += 1
        progress((ids[-1] - first + 1) / (newest - first + 1))
    yield _record(pack({"chunks": count}, {}, "none"))


def _with_format(layout: Mapping[str, object]) -> dict[str, object]:
    return {**layout, "chunk_format": COLUMNS_FORMAT}


def _record(data: bytes) -> bytes:
    return SIZE.pack(len(data)) + data


def _stored(client: Client, keys: Keys, ids: range, slots: int, chunk_length: int) -> Iterator[bytes]:
    with client.pipeline(transaction=True) as pipeline:
        pipeline.hmget(keys.chunks, list(ids))
        pipeline.hmget(keys.priorities, [(chunk - 1) % slots for chunk in ids])
        chunks, priorities = pipeline.execute()
    for chunk, value, row in zip(ids, chunks, priorities, strict=True):
        if value is None or row is None or chunk_id_of(row) != chunk:
            continue
        try:
            chunk_from_bytes(value)
            meta, columns = unpack(value)
            leaves = np.frombuffer(row, np.float32, offset=CHUNK_ID.size)
        except ValueError:  # CodecError too
            continue  # the replay itself warns of it when it is drawn
        if not _are_leaves(leaves, chunk_length):
            continue
        yield _record(pack(meta, {**columns, LEAVES: leaves}, "zstd"))


def read_dump(file: BinaryIO, size: int, layout: Mapping[str, object], chunk_length: int) -> Iterator[Packet]:
    """The chunks of a dump of `size` bytes, oldest first, ready to be pushed without counting as steps.

    Raises DumpError before the first when it was made with another layout, and as soon as a record is damaged
    or missing: what came before is good.
    """
    try:
        found = dict(json.loads(str(_next(file, size).meta.get("layout", "{}"))))
    except DumpError:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise DumpError("It is damaged: its layout cannot be read") from error
    wanted = json.loads(json.dumps(_with_format(layout)))
    for name in wanted:
        if (found.get(name) or 0) != (wanted[name] or 0):  # earlier versions lack what was not set then
            raise DumpError(f"It was made with {name} {found.get(name)}, not {wanted[name]}")
    count = 0
    while "chunks" not in (record := _next(file, size)).meta:
        yield _packet(record, chunk_length)
        count += 1
    if record.meta["chunks"] != count:
        raise DumpError(f"It holds {count} chunks instead of {record.meta['chunks']}")


def _next(file: BinaryIO, size: int) -> Packed:
    head = file.read(SIZE.size)
    length = SIZE.unpack(head)[0] if len(head) == SIZE.size else MAX_RECORD_BYTES
    if length > min(size - file.tell(), MAX_RECORD_BYTES):
        raise DumpError("Its end is missing")
    try:
        return unpack(file.read(length))
    except CodecError as error:
        raise DumpError(f"It is damaged: {str(error).rstrip('.')}") from error


def _packet(record: Packed, chunk_length: int) -> Packet:
    columns: dict[str, Any] = dict(record.columns)
    leaves = columns.pop(LEAVES, None)
    data = pack(record.meta, columns, rest=CHANGES)
    try:
        chunk_from_bytes(data)
    except CodecError as error:
        raise DumpError(f"It is damaged: {str(error).rstrip('.')}") from error
    if not _are_leaves(leaves, chunk_length):
        raise DumpError("It is damaged: the priorities of a chunk are none")
    return Packet(data, leaves, transitions=0)


def _are_leaves(leaves: Any, chunk_length: int) -> bool:
    whole = leaves is not None and leaves.shape == (chunk_length,) and leaves.dtype == np.float32
    return bool(whole and np.isfinite(leaves).all() and (leaves >= 0).all())
