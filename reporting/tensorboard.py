"""Scalars along a run, for TensorBoard."""

import io
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from reporting.atomic import append

_writer_numbers = count()


class Scalars:
    """Writes named scalars against agent steps into a folder that TensorBoard reads.

    Args:
        folder: made where missing; TensorBoard shows its earlier event files and the new one as one history.
        purge_step: a resumed run starts here; what earlier files hold at this step and later is not shown.

    Raises:
        OSError: the disk refused; what was added is kept and written next time.
    """

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        place = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_writer_numbers):04d}"
        self._path = folder / f"events.out.tfevents.{place}"
        self._pending = io.BytesIO()
        self._records = RecordWriter(self._pending)
        self._add(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if purge_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._add(Event(wall_time=time.time(), step=purge_step, session_log=start))
        with suppress(OSError):  # no room yet: written with the first values
            self.flush()

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Write `values` at `step`, all with the same wall time."""
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        self._add(Event(wall_time=time.time(), step=step, summary=summary))
        self.flush()

    def flush(self) -> None:
        """Bring to the file what the disk refused so far."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        append(self._path, self._pending.getvalue())
        self._pending.seek(0)
        self._pending.truncate()

    def _add(self, event: Event) -> None:
        self._records.write(event.SerializeToString())
