"""TensorBoard scalars without torch."""

import io
import os
import socket
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import TracebackType

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from reporting.atomic import append

_numbers = count()


class Scalars:
    """Writes named scalars against agent steps into a folder that TensorBoard reads.

    Args:
      folder: made where missing; TensorBoard shows earlier event files in it and the new one as one history.
      purge_step: a resumed run starts here; what earlier files hold at this step and later is not shown.

    Raises:
      OSError: the disk refused; what was added is kept for the next `flush`.
    """

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        place = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self._path = folder / f"events.out.tfevents.{place}"
        self._pending = io.BytesIO()
        self._records = RecordWriter(self._pending)
        self._add(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if purge_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._add(Event(wall_time=time.time(), step=purge_step, session_log=start))
        self.flush()

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Takes in `values` at `step`, all with the same wall time; `flush` writes them."""
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        self._add(Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self) -> None:
        """Brings everything added so far to the file."""
        append(self._path, self._pending.getvalue())
        self._pending.seek(0)
        self._pending.truncate()

    def close(self) -> None:
        """As `flush`."""
        self.flush()

    def _add(self, event: Event) -> None:
        self._records.write(event.SerializeToString())

    def __enter__(self) -> "Scalars":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
