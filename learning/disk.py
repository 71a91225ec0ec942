"""Writing results while the disk is full: the run goes on, and what can wait is written later."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)


class PatientDisk:
    """Tries writes that may be tried again; says once that a kind of them fails, and once that it is over."""

    def __init__(self) -> None:
        self._failing: set[str] = set()

    def __call__(self, what: str, write: Callable[[], None]) -> bool:
        """Whether `write` succeeded; `what` names its kind in sentences."""
        try:
            write()
        except OSError as error:
            if what not in self._failing:
                log.warning("Cannot write %s (%s): going on, and trying again.", what, error)
            self._failing.add(what)
            return False
        if what in self._failing:
            log.warning("Writing %s again.", what)
            self._failing.discard(what)
        return True
