"""Trackers: what TensorBoard gets, sent to wandb, MLflow or Trackio too.

`open_tracker` imports the one that is asked for.

To add one, write a file here with a class `Tracker` like the three others, and add its name to the choices of
--track (evaluation/settings.py).
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import NamedTuple, Protocol

log = logging.getLogger(__name__)

PROJECT = "rainbow-iqn-apex"
MOST_WAITING = 1000
"""Calls that wait for a slow tracker; what comes then is left out."""
WARNED_EVERY_S = 60.0
"""Shortest time between two warnings of that."""
CLOSING_S = 20.0
"""Longest wait at the end: a third of what a supervisor gives the learner, which has to save in it too
(`supervision.supervisor.Limits.stop`).
"""


class TrackerError(ValueError):
    """A tracker cannot begin; the message is one sentence."""


class Start(NamedTuple):
    """What a tracker is told when it begins."""

    name: str  # of the run
    key: str  # the same whenever this run goes on
    folder: Path  # of its results
    settings: Mapping[str, object]


class Backend(Protocol):
    """What each file here has as `Tracker`, made of a Start."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Take values at a step of the learner's clock."""

    def film(self, path: Path) -> None:
        """Take an .mp4 file."""

    def close(self) -> None:
        """Send what is left."""


class Tracking:
    """Hands everything to a tracker in a thread of its own, so that a slow network holds nobody up.

    A tracker that fails is left out from then on; the run goes on, and one line in its log says so.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend, self._warn_at = backend, 0.0
        self._calls: Queue[Callable[[], None] | None] = Queue(MOST_WAITING)
        self._thread = Thread(target=self._run, name="tracker", daemon=True)
        self._thread.start()

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Send `values` at `step`."""
        known = dict(values)
        self._put(lambda: self._backend.scalars(step, known))

    def film(self, path: Path) -> None:
        """Send a film that is written to its end."""
        self._put(lambda: self._backend.film(path))

    def close(self) -> None:
        """Wait until everything is sent, for CLOSING_S at most."""
        end = time.monotonic() + CLOSING_S
        for call in (self._backend.close, None):
            self._put(call, end - time.monotonic())
        self._thread.join(max(end - time.monotonic(), 0))

    def _put(self, call: Callable[[], None] | None, patience_s: float = 0) -> None:
        try:
            self._calls.put(call, timeout=max(patience_s, 0))
        except Full:
            if time.monotonic() >= self._warn_at:
                self._warn_at = time.monotonic() + WARNED_EVERY_S
                log.warning("The tracker is too slow: some values are not sent to it.")

    def _run(self) -> None:
        failed = False
        while (call := self._calls.get()) is not None:
            try:
                if not failed:
                    call()
            except Exception as error:  # a package of others, perhaps a network
                failed = True
                log.warning("The tracker gets nothing more: %s", error)


def open_tracker(tracker: str, name: str, folder: Path, settings: Mapping[str, object]) -> Tracking:
    """Begin, or go on with, what `tracker` holds of the run called `name` whose results are in `folder`.

    Raises:
        TrackerError: its package is not installed, or it cannot begin.
    """
    try:
        module = import_module(f"{__name__}.{tracker}")
    except ImportError as error:
        advice = f"EXTRAS={tracker} bash scripts/setup.sh installs it"
        raise TrackerError(f"--track {tracker} needs a package ({error}): {advice}.") from error
    start = Start(name, _key(folder / f".{tracker}_{name}"), folder, settings)
    try:
        return Tracking(module.Tracker(start))
    except Exception as error:  # no network, no account
        raise TrackerError(f"--track {tracker} could not begin: {error}") from error


def _key(path: Path) -> str:
    """The key of a run, kept in its folder."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(uuid.uuid4().hex, encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()
