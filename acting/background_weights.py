"""Published weights fetched by a thread, while acting goes on."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from acting.weights_source import ActingWeights, PublishedWeights


class BackgroundWeights:
    """`PublishedWeights` whose bytes come, are checked and become tensors in a thread of their own.

    The actor takes them over before the first vector step after that. When they come depends on time, so that
    a run that must be repeatable asks `PublishedWeights` itself.
    """

    def __init__(self, published: PublishedWeights) -> None:
        """`published` is this object's alone from here on."""
        self._published = published
        self._thread = ThreadPoolExecutor(1, "weights")
        self._coming: Future[ActingWeights | None] | None = None
        self._has_begun = False

    def poll(self, steps: int, episode_begins: bool) -> ActingWeights | None:
        """What has come, if it is new. The first look waits for it: else the actor would begin with weights
        that nobody published. Raises what ended a fetch.
        """
        if self._coming is not None:
            return self._come()
        if not self._published.is_due(steps, episode_begins):
            return None
        if not self._has_begun:
            self._has_begun = True
            return self._published.fetch(steps)
        self._coming = self._thread.submit(self._published.fetch, steps)
        return None

    def _come(self) -> ActingWeights | None:
        assert self._coming is not None
        if not self._coming.done():
            return None
        weights, self._coming = self._coming.result(), None
        return weights

    def state_dict(self) -> None:
        """It depends on time."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """There is none."""

    def close(self) -> None:
        """Let the thread end; what it still fetches is not wanted any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
