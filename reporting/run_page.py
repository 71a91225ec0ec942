"""`Reward_<game>.html`: scores, actions, rooms and learning of a run, in one file that needs no network."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import plotly.graph_objects as go

from reporting.episodes import EpisodeRecord, by_purpose
from reporting.learning import LearningPoint
from reporting.page import (
    AXIS,
    BLUE,
    RULER,
    STEPS,
    TITLE,
    Section,
    Tile,
    base_layout,
    empty_figure,
    write_page,
)
from reporting.run_figures import (
    Bounds,
    action_figure,
    action_shares,
    learning_figure,
    reward_figure,
)
from reporting.scores import EVALUATION_WINDOW, WINDOW, RewardPoint, reward_points


class RunHistory(NamedTuple):
    """All that the page shows."""

    games: Sequence[str]
    frames_per_step: int  # emulator frames per agent step
    action_bounds: Bounds | None  # None where actions are discrete
    episodes: Sequence[EpisodeRecord]
    learning: Sequence[LearningPoint]


def write_run_html(path: Path, run: RunHistory) -> None:
    """Draws the run so far; a sentence stands where there is nothing to draw yet."""
    training, evaluation = by_purpose(run.episodes)
    actions = action_figure(action_shares(training or evaluation), run.action_bounds)
    games = [_GameHistory(game, run) for game in run.games]
    sections = [
        *(game.section(named=len(games) > 1) for game in games),
        Section(actions, "Actions", "share of each, by when their episodes ended"),
        *_room_sections(run.episodes),
        Section(
            learning_figure(run.learning), "Learning", "means over about 10 s, against agent steps", wide=True
        ),
    ]
    tiles = games[0].tiles() if len(games) == 1 else [game.tile() for game in games]
    heading = ", ".join(run.games)
    note = _note(any(game.evaluated for game in games))
    write_page(path, f"{heading}: reward", heading, note, [*tiles, *_room_tiles(run.episodes)], sections)


class _GameHistory:
    """How the scores of one of the run's games went."""

    def __init__(self, game: str, run: RunHistory) -> None:
        played = [episode for episode in run.episodes if episode.game in ("", game)]
        training, evaluation = by_purpose(played)
        self.trained, self.evaluated = reward_points(training), reward_points(evaluation, EVALUATION_WINDOW)
        self._game, self._frames_per_step = game, run.frames_per_step

    def section(self, named: bool) -> Section:
        """Its curve."""
        figure = reward_figure(self.trained, self.evaluated, self._frames_per_step)
        return Section(figure, self._game if named else "", wide=True)

    def tiles(self) -> list[Tile]:
        """Of the only game."""
        return _tiles(self.trained, self.evaluated, self._frames_per_step)

    def tile(self) -> Tile:
        """Of one game among several."""
        points = self.trained or self.evaluated
        known = (f"{points[-1].mean:,.1f}", f"± {points[-1].std:,.1f}") if points else ("–", "no episode yet")
        return Tile(self._game, *known)


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


def first_visits(records: Sequence[EpisodeRecord]) -> dict[int, int]:
    """Room -> agent steps of all actors at the end of the first episode that visited it; in order of time."""
    first: dict[int, int] = {}
    for record in sorted(records, key=lambda each: each.actor_steps):
        for room in record.rooms:
            first.setdefault(room, record.actor_steps)
    return first


def rooms_figure(records: Sequence[EpisodeRecord]) -> go.Figure:
    """A stair with a step for each room, which names it; upward how many rooms were known."""
    first = first_visits(records)
    if not first:
        return empty_figure("No episode in a game with rooms has ended yet.")
    end = max(record.actor_steps for record in records)
    known = list(range(1, len(first) + 1))
    stair = go.Scatter(
        x=[*first.values(), end],
        y=[*known, known[-1]],
        mode="lines",
        line={"color": BLUE, "width": 2, "shape": "hv"},
        hoverinfo="skip",
    )
    rooms = go.Scatter(
        x=list(first.values()),
        y=known,
        text=[f"room {room}" for room in first],
        textposition="top right",
        mode="markers+text",
        marker={"color": BLUE, "size": 9},
        hovertemplate="<b>%{text}</b><br>in an episode that ended at %{x:,.0f} agent steps<extra></extra>",
    )
    layout = {
        **base_layout(),
        "height": 610,
        "showlegend": False,
        "margin": {"l": 70, "r": 40, "t": 34, "b": 60},
        "xaxis": {**STEPS, **RULER, "title": {"text": "agent steps", "font": TITLE}},
        "yaxis": {
            **AXIS,
            "title": {"text": "rooms known", "font": TITLE},
            "range": [0, len(first) + 0.8],
            "dtick": 1,
        },
    }
    return go.Figure([stair, rooms], layout)


def _note(evaluated: bool) -> str:
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
