"""What a run does, by the statuses that its processes publish: its phase, its pace, its scores so far."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from memory.runs.keys import Keys
from memory.runs.reports import Status, number, read_statuses
from memory.server.connection import RedisConfig, make_client
from memory.server.replies import UNREACHABLE, refusals_as_outages

LOOK_EVERY_S = 1.0
"""Seconds between two looks: as often as processes publish."""
RETRY_AFTER_S = 5.0
"""How long (seconds) a server that is away is not asked again: a question to it can take seconds."""
PACE_OF_S = 300.0
"""Window (s) from which the time left is estimated."""
PACE_AFTER_S = 10.0
"""Seconds of learning before there is an estimate."""
MOST_SCORES = 2_000
"""Most points of the scores that are kept; beyond that every second one is dropped."""
LEARNING = "learning"


@dataclass
class Story:
    """A run as its processes tell it."""

    learner: Status = field(default_factory=dict)
    """Its status; empty while it has published none. Keys, all optional or None: t, t_max (steps), t_actors,
    steps and learning_starts_at (the run's counters), replay_fill (0 to 1; None without a replay), updates,
    loss, last_score, mean_score, weights_age (seconds), state, warning.
    """
    actors: Mapping[str, Status] = field(default_factory=dict)
    """By name ("0"), with the same keys, and steps_per_second; t counts the steps of all actors."""
    scores: list[tuple[float, float]] = field(default_factory=list)
    """Steps of all actors, and the mean score then."""
    seconds_left: float | None = None
    """By the pace of learning; None where that is unknown."""
    paced_s: float = 0.0
    """Seconds of learning that this pace is of."""

    @property
    def t(self) -> float:
        """Steps of all actors."""
        played = (number(status, "t") for status in self.actors.values())
        return max(played, default=max(number(self.learner, "t_actors"), number(self.learner, "t")))

    @property
    def t_max(self) -> float:
        """Where the run ends; 0 where nobody has said so."""
        return max(number(status, "t_max") for status in (*self.actors.values(), self.learner))


class RunWatch:
    """Looks at the statuses once a second; raises nothing when Redis is away."""

    def __init__(self, config: RedisConfig, keys: Keys) -> None:
        self.story = Story()
        self._keys, self._client = keys, make_client(config)
        self._found: dict[str, float] | None = None  # when each process had last spoken at the first look
        self._paces: deque[tuple[float, float]] = deque()  # monotonic seconds, T_learner
        self._next = 0.0  # monotonic seconds

    def close(self) -> None:
        """Let go of the server."""
        self._client.close()

    def look(self) -> bool:
        """Look if that is due; whether there is something new."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + LOOK_EVERY_S
        try:
            with refusals_as_outages():
                statuses = self._statuses()
        except UNREACHABLE:
            self._next = time.monotonic() + RETRY_AFTER_S
            return False
        self.hear(statuses, now)
        return True

    def hear(self, statuses: Mapping[str, Status], now: float) -> None:
        """Take in statuses by role, at `now` in monotonic seconds."""
        story, learner = self.story, statuses.get("learner", {})
        actors = {role.removeprefix("actor:"): each for role, each in statuses.items() if role != "learner"}
        story.learner, story.actors = learner, dict(sorted(actors.items(), key=lambda item: int(item[0])))
        mean = learner.get("mean_score")
        if isinstance(mean, int | float) and (not story.scores or story.t > story.scores[-1][0]):
            story.scores.append((story.t, float(mean)))
            if len(story.scores) > MOST_SCORES:
                del story.scores[1:-1:2]
        story.seconds_left = self._left(now)

    def _left(self, now: float) -> float | None:
        learner = self.story.learner
        if learner.get("state") != LEARNING or learner.get("t") is None:
            self._paces.clear()
            return None
        t = number(learner, "t")
        self._paces.append((now, t))
        while now - self._paces[0][0] > PACE_OF_S:
            self._paces.popleft()
        began, first = self._paces[0]
        self.story.paced_s = now - began
        if now - began < PACE_AFTER_S or t <= first:
            return None
        return max(self.story.t_max - t, 0) * (now - began) / (t - first)

    def _statuses(self) -> dict[str, Status]:
        """Statuses published since the first look, without unknown values; clocks may jump meanwhile."""
        statuses = read_statuses(self._client, self._keys)
        spoken = {role: float(status.get("time") or 0.0) for role, status in statuses.items()}
        if self._found is None:
            self._found = spoken
        return {
            role: {name: value for name, value in status.items() if value is not None}
            for role, status in statuses.items()
            if spoken[role] != self._found.get(role)
        }


def phase(story: Story) -> str:
    """What the run does, in words: loading, warm-up 1,200 / 8,000 steps, learning.

    The first update comes late where its kernels have to be compiled: once in a clone.
    """
    learner = story.learner
    state = str(learner.get("state", ""))
    if not state:
        return "loading: the processes start"
    starts_at = number(learner, "learning_starts_at")
    if state == LEARNING or not starts_at:
        return state
    steps = min(number(learner, "steps"), starts_at)
    first_update = ": the first update is prepared" if steps == starts_at else ""
    return f"{state} {steps:,.0f} / {starts_at:,.0f} steps{first_update}"


def time_left(seconds: float) -> str:
    """`3 h 12 min left`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days:,} d {hours} h left"
    return f"{hours} h {minutes} min left" if hours else f"{minutes} min {seconds} s left"
