"""TensorBoard scalars without torch."""

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter


class Scalars:
    """Writes named scalars against agent steps into a folder that TensorBoard reads.

    Args:
      folder: made where missing; TensorBoard shows earlier event files in it and the new one as one history.
      purge_step: a resumed run starts here; what earlier files hold at this step and later is not shown.
    """

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        self._writer = EventFileWriter(str(folder))
        if purge_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(wall_time=time.time(), step=purge_step, session_log=start))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Records `values` at `step`, all with the same wall time."""
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self) -> None:
        """Brings everything added so far to the file."""
        self._writer.flush()

    def close(self) -> None:
        """Flushes and closes the file; `add` may not be called afterwards."""
        self._writer.close()

    def __enter__(self) -> "Scalars":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
