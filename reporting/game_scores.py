"""The last scores of a run that plays one game, or several."""

from collections.abc import Sequence

from reporting.episodes import EpisodeRecord
from reporting.normalise import human_reference
from reporting.window import WINDOW, ScoreSummary, ScoreWindow


class GameScores:
    """A window of scores for each game, and what they come to together.

    Scores of several games are joined as fractions of human play (0 random, 1 human) where all of them have
    that reference, so that a game of large numbers does not decide alone; else as they are.
    """

    def __init__(self, games: Sequence[str], size: int = WINDOW) -> None:
        """`games`: all that the run plays; an episode that does not say its game is of the first."""
        self._windows = {game: ScoreWindow(size) for game in games}
        self._last: float | None = None

    @property
    def count(self) -> int:
        """Episodes in the windows of all games."""
        return sum(window.count for window in self._windows.values())

    @property
    def last(self) -> float | None:
        """Raw score of the newest episode; None before the first."""
        return self._last

    def add(self, record: EpisodeRecord) -> None:
        """Takes in an episode. Raises ValueError where it is of no game of this run."""
        game = record.game or next(iter(self._windows))
        if game not in self._windows:
            raise ValueError(f"An episode of {game} in a run of {', '.join(self._windows)}.")
        self._windows[game].add(record.score_saber, record.length)
        self._last = record.score_saber

    def by_game(self) -> dict[str, ScoreSummary]:
        """Raw scores of each game that has any."""
        summaries = {game: window.summary() for game, window in self._windows.items()}
        return {game: summary for game, summary in summaries.items() if summary is not None}

    def summary(self) -> ScoreSummary | None:
        """One game's own; of several the means over games. None until each has an episode."""
        known = self.by_game()
        if len(known) < len(self._windows):
            return None
        return next(iter(known.values())) if len(known) == 1 else _joined(known)


def joined_means(games: Sequence[str], records: Sequence[EpisodeRecord]) -> dict[int, float]:
    """T_actors -> the joined mean there, from the first episode that makes it known; records by T_actors."""
    scores = GameScores(games)
    means: dict[int, float] = {}
    for record in records:
        scores.add(record)
        summary = scores.summary()
        if summary is not None:
            means[record.actor_steps] = summary.mean
    return means


def _joined(known: dict[str, ScoreSummary]) -> ScoreSummary:
    references = {game: human_reference(game) for game in known}
    comparable = all(references.values())
    parts = [
        _scaled(known[game], reference if comparable else None) for game, reference in references.items()
    ]
    count = len(parts)
    return ScoreSummary(
        mean=sum(part.mean for part in parts) / count,
        std=sum(part.std for part in parts) / count,
        minimum=min(part.minimum for part in parts),
        maximum=max(part.maximum for part in parts),
        mean_length=sum(part.mean_length for part in parts) / count,
        longest_episode=max(part.longest_episode for part in parts),
        episodes=min(part.episodes for part in parts),
    )


def _scaled(summary: ScoreSummary, reference: tuple[float, float] | None) -> ScoreSummary:
    if reference is None:
        return summary
    random, human = reference
    low, high = ((score - random) / (human - random) for score in (summary.minimum, summary.maximum))
    mean, std = (summary.mean - random) / (human - random), summary.std / (human - random)
    return summary._replace(mean=mean, std=std, minimum=low, maximum=high)
