"""The replay on disk, beside the snapshot: written by --save-replay, restored where Redis lost it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path

from learning.preseed import PreseedLines, learners_push
from memory.replay.dump import CHUNKS_PER_READ, DumpError, dump_records, read_dump
from memory.replay.replay import ReplayShape
from memory.runs.keys import Keys
from memory.runs.push import Packet
from memory.server.connection import Client, Patience
from reporting.atomic import atomic_file

log = logging.getLogger(__name__)


class ReplayDump:
    """`replay_<game>_<T_actors>.dump` in a folder; only the newest is kept."""

    def __init__(
        self,
        folder: Path,
        file_name: str,
        client: Client,
        keys: Keys,
        shape: ReplayShape,
        layout: Mapping[str, object],
    ) -> None:
        """`layout`: settings without which the chunks mean nothing."""
        self._folder, self._file_name = folder, file_name
        self._client, self._keys, self._shape, self._layout = client, keys, shape, layout

    def save(self, t_actors: int) -> None:
        """Write what Redis holds, then remove the older dumps.

        Raises a redis error, or OSError: the older dump is then still there.
        """
        path = self._folder / f"replay_{self._file_name}_{t_actors}.dump"
        older = [old for old in self._found() if old != path]
        lines = PreseedLines(path, "Saving the replay")
        shape = self._shape
        records = dump_records(self._client, self._keys, shape.slots, self._layout, shape.chunk_length, lines)
        with atomic_file(path) as file:
            file.writelines(records)
        for old in older:
            old.unlink(missing_ok=True)
        log.info("Saved the replay to %s (%s MB).", path, f"{path.stat().st_size / 1e6:,.1f}")

    def restore(self, epoch: int, patience: Patience) -> None:
        """Push the newest dump into the run's empty replay, if there is one; `epoch` was just opened.

        A damaged one is named, and as much of it used as is whole. Raises as `learners_push`.
        """
        found = self._found()
        if not found:
            return
        path, size = found[0], found[0].stat().st_size
        lines, chunks, portion = PreseedLines(path, "Restoring the replay"), 0, list[Packet]()
        with (
            path.open("rb") as file,
            learners_push(self._client, self._keys, epoch, self._shape.slots, patience) as push,
        ):
            try:
                for packet in read_dump(file, size, self._layout, self._shape.chunk_length):
                    portion.append(packet)
                    if len(portion) == CHUNKS_PER_READ:
                        push(portion)
                        chunks, portion = chunks + len(portion), []
                        lines(file.tell() / size)
            except DumpError as error:
                log.warning("The replay in %s cannot be restored any further. %s.", path, error)
            if portion:
                push(portion)
        log.info("Restored %s chunks of the replay from %s.", f"{chunks + len(portion):,}", path)

    def _found(self) -> list[Path]:
        """The dumps of this game, the one of most steps first."""
        pattern = re.compile(re.escape(f"replay_{self._file_name}_") + r"(\d+)\.dump")
        paths = [
            (int(m[1]), path) for path in self._folder.glob("*.dump") if (m := pattern.fullmatch(path.name))
        ]
        return [path for _, path in sorted(paths, reverse=True)]
