"""A watchdog thread: reports an environment that does not answer, and ends an actor that stops meanwhile."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from acting.links.link import ActorConfig

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5  # seconds between two looks at the environment's step (our choice)
HANGS_AFTER_S = 5.0
"""How long (seconds) a process that was asked to stop waits for its environment: a step is over by then, or
never.
"""


class EnvironmentWatch:
    """Says where the environment is silent, and ends a process that was asked to stop and waits for it.

    It works within `with`, in a thread of its own: the thread that enters runs the environment's code.
    """

    def __init__(
        self,
        config: ActorConfig,
        asked_at: Callable[[], float | None],
        where: Callable[[], str],
        stopped: Callable[[], bool],
        save: Callable[[], None] = lambda: None,
    ) -> None:
        """Watch from the next `with` on.

        Args:
            asked_at: when the environment began what it does (time.monotonic); None while none waits.
            where: the end of a sentence that names step and episode.
            stopped: whether this process was asked to end.
            save: what is done before the process ends.
        """
        self._config, self._asked_at, self._where = config, asked_at, where
        self._stopped, self._save = stopped, save
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="environment", daemon=True)
        self._watched = 0

    def __enter__(self) -> None:
        self._watched = threading.get_ident()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        warned_of: float | None = None
        while not self._ended.wait(LOOK_EVERY_S):
            asked_at = self._asked_at()
            silent = 0.0 if asked_at is None else time.monotonic() - asked_at
            if silent > self._config.env_patience and warned_of != asked_at:
                log.warning("Actor %d: %s.", self._config.id_actor, self._silence(silent))
                warned_of = asked_at
            if self._stopped() and silent > HANGS_AFTER_S:
                silence = self._silence(silent)
                log.error("Actor %d ends, as it was asked to: %s.", self._config.id_actor, silence)
                exit_code = 1
                try:
                    self._save()
                    exit_code = 0
                except BaseException:
                    log.exception("The last snapshot was not saved.")
                finally:
                    os._exit(exit_code)

    def _silence(self, seconds: float) -> str:
        """Who does not answer, for how long, and where in its play and in its code."""
        code = traceback.extract_stack(sys._current_frames()[self._watched])[-1]
        place = f"{Path(code.filename).name}, line {code.lineno}"
        return f"{self._config.game} has not answered for {seconds:.0f} s, {self._where()} ({place})"
