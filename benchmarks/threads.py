"""Work in the number of threads that a learner would find for it."""

from __future__ import annotations

from collections.abc import Callable

from wiring import Setting, thread_choice


def with_its_threads(work: Callable[[], object], setting: Setting) -> Callable[[], int]:
    """A piece of `work`, once its threads are found as a launcher finds those of an update."""
    threads = thread_choice(setting.args)
    if threads is None:
        return lambda: _one(work)

    def piece() -> int:
        with threads:
            return _one(work)

    while threads.trying:
        piece()
    return piece


def _one(work: Callable[[], object]) -> int:
    work()
    return 1
