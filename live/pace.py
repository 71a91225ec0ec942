"""How long the page rests between two refreshes, so that they take a small share of a core."""

from __future__ import annotations

import time
from collections import deque

LONGEST_REST_S = 60.0
REMEMBERED = 2
"""Last refreshes whose cost is remembered. The cheapest of them sets the pause: loading PyTorch or drawing a
view the first time is done once.
"""


class RefreshPace:
    """Spaces out refreshes by the processor time that this process took for the last ones."""

    def __init__(self, share: float, every_s: float) -> None:
        """Args: share: of a core, at most; every_s: seconds between refreshes that take less."""
        self._share, self._every_s = share, every_s
        self._spent = deque[float](maxlen=REMEMBERED)
        self._before = time.process_time()

    def rest(self) -> float:
        """Seconds until the next refresh is due; asked for once after each."""
        now = time.process_time()
        self._spent.append(now - self._before)
        self._before = now
        if len(self._spent) < REMEMBERED:
            return self._every_s
        return min(max(self._every_s, min(self._spent) / self._share), LONGEST_REST_S)
