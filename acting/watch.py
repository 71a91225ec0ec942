"""Watches an actor's environment from a thread of its own: it may never answer."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from acting.player import Player

log = logging.getLogger(__name__)

SILENT_AFTER_S = 30.0
"""A step of Malmo, the slowest environment here, takes less unless Minecraft starts again."""
HANGS_AFTER_S = 5.0
"""How long a process that was asked to stop waits for its environment: a step is over by then, or never."""


class EnvironmentWatch:
    """Says that the environment is silent, and ends a process that was asked to stop and waits for it.

    Within `with`, from a thread of its own: the main thread is in the environment's code.
    """

    def __init__(
        self, player: Player, name: str, stopped: Callable[[], bool], save: Callable[[], None] = lambda: None
    ) -> None:
        """`save`: what is done before the process ends."""
        self._player, self._name, self._stopped, self._save = player, name, stopped, save
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="environment", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        warned_of: float | None = None
        while not self._ended.wait(0.5):
            asked_at = None if self._player.waits_for_others else self._player.asked_at
            silent = 0.0 if asked_at is None else time.monotonic() - asked_at
            if silent > SILENT_AFTER_S and warned_of != asked_at:
                log.warning("%s: its environment has not answered for %.0f s.", self._name, silent)
                warned_of = asked_at
            if self._stopped() and silent > HANGS_AFTER_S:
                sentence = "%s ends, as it was asked to: its environment has not answered for %.0f s."
                log.error(sentence, self._name, silent)
                try:
                    self._save()
                finally:
                    os._exit(1)
