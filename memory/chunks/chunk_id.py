"""The id that every stored row of a chunk's leaves begins with."""

from __future__ import annotations

import struct

CHUNK_ID = struct.Struct("<Q")
NAMELESS = 0
"""Chunks count from 1: what is stored under no id is damaged."""


def chunk_id_of(value: bytes) -> int:
    """The id that `value` begins with, or NAMELESS."""
    return int(CHUNK_ID.unpack_from(value)[0]) if len(value) >= CHUNK_ID.size else NAMELESS
