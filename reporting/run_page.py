"""`Reward_<game>.html`: a run in pictures (scores, actions, learning), in one file that needs no network."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from reporting.actions import Bounds, action_figure, action_shares
from reporting.curves import learning_figure
from reporting.episodes import EpisodeRecord, by_purpose
from reporting.learning import LearningPoint
from reporting.page import Section, Tile, write_page
from reporting.rewards import RewardPoint, reward_figure, reward_points
from reporting.rooms import first_visits, rooms_figure
from reporting.window import EVALUATION_WINDOW, WINDOW


class RunHistory(NamedTuple):
    """All that the page tells."""

    game: str
    frames_per_step: int  # emulator frames per agent step
    action_bounds: Bounds | None  # None where actions are discrete
    episodes: Sequence[EpisodeRecord]
    learning: Sequence[LearningPoint]


def write_run_html(path: Path, run: RunHistory) -> None:
    """Draws the run so far; says so where there is nothing to draw yet."""
    training, evaluation = by_purpose(run.episodes)
    trained, evaluated = reward_points(training), reward_points(evaluation, EVALUATION_WINDOW)
    rewards = reward_figure(trained, evaluated, run.frames_per_step)
    actions = action_figure(action_shares(training or evaluation), run.action_bounds)
    sections = [
        Section(rewards, wide=True),
        Section(actions, "Actions", "share of each, by when their episodes ended"),
        *_room_sections(run.episodes),
        Section(
            learning_figure(run.learning), "Learning", "means over about 10 s, against agent steps", wide=True
        ),
    ]
    tiles = [*_tiles(trained, evaluated, run.frames_per_step), *_room_tiles(run.episodes)]
    write_page(path, f"{run.game}: reward", run.game, _note(evaluated), tiles, sections)


def _room_sections(episodes: Sequence[EpisodeRecord]) -> list[Section]:
    if not first_visits(episodes):
        return []
    return [Section(rooms_figure(episodes), "Rooms", "by the end of the first episode that came to each")]


def _room_tiles(episodes: Sequence[EpisodeRecord]) -> list[Tile]:
    rooms = first_visits(episodes)
    if not rooms:
        return []
    most = max(len(set(episode.rooms)) for episode in episodes)
    return [Tile("Rooms", str(len(rooms)), f"at most {most} in one episode")]


def _note(evaluated: Sequence[RewardPoint]) -> str:
    training = f"scores of the last {WINDOW} episodes while training"
    return f"{training} and of the last {EVALUATION_WINDOW} of evaluation" if evaluated else training


def _tiles(
    trained: Sequence[RewardPoint], evaluated: Sequence[RewardPoint], frames_per_step: int
) -> list[Tile]:
    """The state of the run in a few numbers."""
    if not (trained or evaluated):
        return []
    last = max([*trained[-1:], *evaluated[-1:]], key=lambda point: point.actor_steps)
    frames = f"{_short(last.actor_steps * frames_per_step)} frames" if frames_per_step > 1 else ""
    return [
        *_training_tiles(trained),
        *(Tile("Evaluation mean", f"{point.mean:,.1f}", f"± {point.std:,.1f}") for point in evaluated[-1:]),
        Tile("Agent steps", _short(last.actor_steps), frames),
        Tile("Learner steps", _short(last.learner_steps)),
    ]


def _training_tiles(points: Sequence[RewardPoint]) -> list[Tile]:
    if not points:
        return []
    last = points[-1]
    return [
        Tile("Mean score", f"{last.mean:,.1f}", f"± {last.std:,.1f}"),
        Tile("Best mean so far", f"{max(point.mean for point in points):,.1f}"),
        Tile("Best episode", f"{max(point.maximum for point in points):,.0f}"),
        Tile("Mean length", f"{last.mean_length:,.0f}", f"steps, longest {last.longest_episode:,}"),
    ]


def _short(count: int) -> str:
    """12345678 as "12.3 M"."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)
