"""Reads event logs: piece by piece in bounded memory, or episode by episode."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from event_log.records import FORMAT, MAGIC, EventLogError, LoggedEpisode, LogHeader, Piece, read_packed
from event_log.soundness import Unsound, header_from, piece_from
from memory.chunks.codec import CodecError
from memory.chunks.decoding import Packed, unpack
from own_code.code import SHOWN

log = logging.getLogger(__name__)

Progress = Callable[[float], None]
"""Called with the share of a file that was read, 0 to 1."""


def read_header(path: Path) -> LogHeader:
    """The header of the log `path`. Raises EventLogError when it is none."""
    with _opened(path) as file:
        return read_opened_header(file, path)


def read_opened_header(file: BinaryIO, path: Path) -> LogHeader:
    """The header of an open log, whose position is then behind it. Raises EventLogError."""
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise EventLogError(f"{path} is not an event log.")
    try:
        packed = read_packed(file)
        record = None if packed is None else unpack(packed)
    except CodecError as error:
        raise EventLogError(f"The event log {path} is damaged where it begins: {error}") from error
    if record is None:
        raise EventLogError(f"The event log {path} is empty: it was broken off as it began.")
    if record.meta.get("format") != FORMAT:
        found = record.meta.get("format")
        raise EventLogError(f"The event log {path} has format {found}; this program reads format {FORMAT}.")
    try:
        return header_from(record)
    except Unsound as unsound:
        raise EventLogError(f"The event log {path} begins with a header {unsound}.") from unsound


def check_header(path: Path, logged: LogHeader, played: LogHeader) -> None:
    """Raises EventLogError, naming both, unless they are equal as far as is known."""
    env_args = played.env_args if logged.env_args is None else logged.env_args
    if logged._replace(code=played.code, env_args=env_args) != played:
        raise EventLogError(
            f"The event log {path} was recorded from {logged}; what is played here is {played}."
        )
    if logged.code != played.code:
        raise EventLogError(
            f"The event log {path} was recorded from another {played.game}, of the SHA-256"
            f" {logged.code[:SHOWN] or 'unknown'}, and it is {played.code[:SHOWN]} here: give the same file"
            " to --game, or --changed-code beside --event-log-in."
        )


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise EventLogError(f"The event log {path} cannot be read: {error.strerror}.") from error


def read_pieces(path: Path, progress: Progress = lambda share: None) -> Iterator[Piece]:
    """All whole pieces in the order in which they were written.

    What a kill broke off, or damage, is named in a warning and left out, and so are pieces that do not belong
    to this log, and later ones of their episodes; these are counted. Raises EventLogError when `path` is no
    event log.
    """
    left_out: Counter[str] = Counter()
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        header = read_opened_header(file, path)
        reached: dict[int, tuple[int, int]] = {}  # environment -> episode, steps read of it
        for record in _records(file, path, size):
            try:
                piece = piece_from(record, header)
            except Unsound as unsound:
                left_out[str(unsound)] += 1
                continue
            episode, steps = reached.get(piece.environment, (-1, 0))
            if piece.first_step in (0, steps if piece.episode == episode else 0):
                reached[piece.environment] = piece.episode, piece.first_step + len(piece.r_t)
                yield piece
            else:
                left_out["that follow one that is missing"] += 1
            progress(file.tell() / size)
    if left_out:
        counts = ", ".join(f"{count} {what}" for what, count in left_out.items())
        log.warning("These records of %s are left out: %s.", path, counts)


def _records(file: BinaryIO, path: Path, size: int) -> Iterator[Packed]:
    while (begin := file.tell()) < size:
        try:
            packed = read_packed(file)
        except CodecError:
            packed = None
        if packed is None:
            left = size - begin
            log.warning("%s ends in %d bytes that are no whole record: they are left out.", path, left)
            return
        try:
            yield unpack(packed)
        except CodecError as error:
            log.warning("A record of %s, at byte %d, is left out: %s", path, begin, error)


def read_episodes(path: Path, chosen: Container[int] | None = None) -> Iterator[LoggedEpisode]:
    """Episodes as they were closed; an unclosed one follows when the next of its environment begins.

    `chosen`: numbers of the episodes wanted, None for all; only these are held in memory, frames and all.
    Raises EventLogError when `path` is no event log.
    """
    unfinished: dict[int, list[Piece]] = {}  # environment -> pieces of its episode
    for piece in read_pieces(path):
        if chosen is not None and piece.episode not in chosen:
            continue
        pieces = unfinished.setdefault(piece.environment, [])
        if pieces and pieces[0].episode != piece.episode:
            yield _joined(pieces)
            pieces.clear()
        pieces.append(piece)
        if piece.closes:
            yield _joined(unfinished.pop(piece.environment))
    yield from (_joined(pieces) for pieces in unfinished.values())


def _joined(pieces: list[Piece]) -> LoggedEpisode:
    last = pieces[-1]
    return LoggedEpisode(
        environment=last.environment,
        number=last.episode,
        frames=np.concatenate([piece.frames for piece in pieces]),
        a_t=np.concatenate([piece.a_t for piece in pieces]),
        r_t=np.concatenate([piece.r_t for piece in pieces]),
        terminated=last.terminated,
        truncated=last.truncated,
    )
