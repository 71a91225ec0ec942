"""What learners of one run raise where another one, or all rows of their batches, are gone."""

from __future__ import annotations


class RankLost(ConnectionError):
    """Another learner of this run has ended, or no longer answers."""


class RowsLost(ConnectionError):
    """Nothing of what the leader draws can be read."""
