"""Finished episodes, and how an actor sends them to the learner, which alone writes them to disk."""

from __future__ import annotations

import json
from collections import deque

from memory.runs.counters import parse_counts
from memory.runs.scripts import REPORT_EPISODE, Sender, refuse, run_script
from reporting.tables import EpisodeRecord

KEPT, KEPT_BYTES = 200_000, 60_000_000
"""Most episodes that wait in Redis for a learner, days of play, and about the most bytes of them: an episode
takes 300, and some 10,000 with many actions.
"""

RECENT = 1000
"""Newest episodes that an actor can send again: far more than are played in the seconds that a server may
forget.
"""

LARGEST_SCORE = 1e100
"""Bound that every score lies below: it is beyond any game's, and its square is still finite."""


def parsed_episode(data: bytes) -> EpisodeRecord | None:
    """The episode in `data`; None where there is none, or where something is not what it should be."""
    try:
        episode = EpisodeRecord(*json.loads(data))
    except (ValueError, TypeError, RecursionError):
        return None
    counts = [
        *episode[:5],
        episode.length,
        episode.agent,
        *_flat(episode.action_counts),
        *_flat([episode.rooms]),
    ]
    scores = episode.score_5min, episode.score_30min, episode.score_saber
    game = episode.game
    is_sound = (
        all(type(count) is int and 0 <= count < 2**63 for count in counts)
        and all(type(score) in (int, float) and abs(score) < LARGEST_SCORE for score in scores)
        and type(episode.evaluation) is bool
        and all(isinstance(rows, list | tuple) for rows in (episode.action_counts, episode.rooms))
        and (isinstance(game, str) and game.isascii() and game.isprintable())
    )
    return episode if is_sound else None


def _flat(rows: object) -> list[object]:
    """Items of all rows; None marks a row that is no list: unsound."""
    if not isinstance(rows, list | tuple):
        return [rows]
    return [item for row in rows for item in (row if isinstance(row, list | tuple) else [row, None])]


def recent_episodes() -> deque[EpisodeRecord]:
    """Room for those that an actor can send again."""
    return deque(maxlen=RECENT)


class EpisodeReporter:
    """Sends an actor's episodes; one sent twice counts once, one that the server forgot is sent again."""

    def __init__(self, sender: Sender, recent: deque[EpisodeRecord] | None = None) -> None:
        """`recent`: what this process reported last, in this run; goes on being filled."""
        self._client, keys, self._actor, self._token, self.epoch = sender
        self._counters, self._field = keys.counters, f"episodes:{self._actor}"
        self._keys = [keys.counters, keys.episodes, keys.actor_lease(self._actor)]
        self._recent = recent_episodes() if recent is None else recent
        self._unanswered = 0  # sent, and nobody knows whether it arrived
        self.sequence = max([self._held(), *(episode.sequence for episode in self._recent)])

    def adopt(self, epoch: int) -> None:
        """Go on under the learner's new epoch, and after the episodes that it knows of this actor's
        predecessors, though the server had forgotten them when this one began.
        """
        self.epoch = epoch
        if not self._unanswered:
            self.sequence = max(self.sequence, self._held())

    def report(self, episode: EpisodeRecord) -> None:
        """Send one episode whose sequence follows `self.sequence`; before it, those that the server forgot.

        Raises StaleEpoch or LostLease; may be called again after any error.
        """
        held = self._send(episode, "in order")
        if held is not None:
            for missed in [*self._recent, episode]:
                if missed.sequence > held:
                    self._send(missed, "as it comes")
        self.sequence = episode.sequence
        if not self._recent or self._recent[-1].sequence < episode.sequence:
            self._recent.append(episode)

    def _send(self, episode: EpisodeRecord, order: str) -> int | None:
        """The last number that the server has, where others are missing before this one."""
        record = json.dumps(episode)
        kept = min(KEPT, KEPT_BYTES // len(record))
        arguments = [self.epoch, self._token, self._actor, episode.sequence, record, kept, order]
        self._unanswered += 1
        verdict = run_script(self._client, REPORT_EPISODE, self._keys, arguments)
        self._unanswered -= 1
        refuse(verdict, self._actor, self.epoch)
        if isinstance(verdict, list):
            return int(verdict[0])
        self._unanswered = 0
        return None

    def _held(self) -> int:
        return parse_counts(self._client.hmget(self._counters, [self._field]))[0]
