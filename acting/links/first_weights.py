"""What an actor waits for before its first step."""

from __future__ import annotations

import time

from acting.links.link import Link
from acting.links.reports import ActorPace, Reports
from acting.links.weights import WeightsSource
from memory.runs.run import POLL_EVERY_S


def wait_for_weights(
    source: WeightsSource | None, pace: ActorPace, link: Link, reports: Reports, weights_at: float
) -> None:
    """Wait until the learner has published weights, which it does when it begins.

    Until its next look an actor would play with those that it was made with.

    Args:
        source: None where the actor plays with its own for good.
        weights_at: As of `Reports.publish_status`.

    Raises:
        As Link.
    """
    while source is not None and not (pace.is_over or source.has_some()):
        time.sleep(POLL_EVERY_S)
        link.refresh_counters()
        reports.publish_status("waiting for the learner", 0, weights_at)
