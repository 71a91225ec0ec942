"""`Reward_<game>.html`: scores, actions, rooms and learning of a run, in one file that needs no network."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import plotly.graph_objects as go

from reporting.history import RewardPoint, RunHistory
from reporting.measures.fitness import EVALUATION_WINDOW, WINDOW, score_levels
from reporting.pages.page import (
    AXIS,
    BLUE,
    RULER,
    STEPS,
    Section,
    Table,
    Tile,
    base_layout,
    titled,
    write_page,
)
from reporting.pages.players import match_sections, seat_sections
from reporting.pages.run_figures import Bounds, action_figure, learning_figure, reward_figure


class GameFacts(NamedTuple):
    """What a page needs to know of a game."""

    frames_per_step: int  # emulator frames per agent step
    action_bounds: Bounds | None = None  # None where actions are discrete
    action_names: Sequence[str] = ()  # of discrete ones


class RunFacts(NamedTuple):
    """What a page says of a run besides how it went."""

    games: Mapping[str, GameFacts]
    settings: Sequence[tuple[str, str, str]] = ()  # flags that have not their defaults: name, value, default
    commit: str = ""
    command: str = ""  # goes on with the run


def write_run_html(path: Path, run: RunHistory, facts: RunFacts) -> None:
    """Draws the run so far, and the matches beside the page; a sentence stands where nothing is there yet."""
    games = [_GameHistory(game, run, facts.games[game]) for game in run.games]
    several = len(games) > 1
    note_of_rooms = "by the end of the first episode that came to each"
    learning = learning_figure(run.learning)
    sections = [
        *(game.section(named=several) for game in games),
        *(section for game in games for section in game.seats(named=several)),
        *match_sections(path.parent, run.games),
        *(game.actions(named=several) for game in games),
        *([Section(rooms_figure(run), "Rooms", note_of_rooms)] if run.first_visits else []),
        Section(learning, "Learning", "means over about 10 s, against agent steps", wide=True),
        *_record_sections(facts),
    ]
    tiles = [game.tile() for game in games] if several else games[0].tiles()
    if run.first_visits:
        tiles.append(Tile("Rooms", str(len(run.first_visits)), f"at most {run.most_rooms} in one episode"))
    heading = ", ".join(run.games)
    note = f"scores of the last {WINDOW} episodes while training"
    if any(game.evaluated for game in games):
        note += f" and of the last {EVALUATION_WINDOW} of evaluation"
    write_page(path, f"{heading}: reward", heading, note, tiles, sections)


class _GameHistory:
    """How the scores of one of the run's games went."""

    def __init__(self, game: str, run: RunHistory, facts: GameFacts) -> None:
        self.trained, self.evaluated = run.trained[game].points(), run.evaluated[game].points()
        self._game, self._facts, self._actions = game, facts, run.actions[game]
        self._seats = [curve.points() for curve in run.by_seat[game]]

    def section(self, named: bool) -> Section:
        """The figure of its scores."""
        levels = score_levels(self._game)
        figure = reward_figure(self.trained, self.evaluated, self._facts.frames_per_step, levels)
        return Section(figure, self._game if named else "", wide=True)

    def seats(self, named: bool) -> list[Section]:
        """The curve of each seat, where there are several."""
        return seat_sections(self._seats, f"Seats of {self._game}" if named else "Seats")

    def actions(self, named: bool) -> Section:
        """How often each was taken."""
        figure = action_figure(self._actions, self._facts.action_bounds, self._facts.action_names)
        heading = f"Actions in {self._game}" if named else "Actions"
        return Section(figure, heading, "share of each, by when their episodes ended")

    def tiles(self) -> list[Tile]:
        """Tiles of the only game: the state of the run in a few numbers, and scores to compare with."""
        levels = [
            Tile("Goal" if name == "goal" else f"{name.capitalize()} play", f"{score:,.1f}")
            for name, score in score_levels(self._game).items()
        ]
        if not (self.trained or self.evaluated):
            return levels
        last = max([*self.trained[-1:], *self.evaluated[-1:]], key=lambda point: point.actor_steps)
        per_step = self._facts.frames_per_step
        frames = f"{_short(last.actor_steps * per_step)} frames" if per_step > 1 else ""
        return [
            *_training_tiles(self.trained),
            *(Tile("Evaluation mean", f"{p.mean:,.1f}", f"± {p.std:,.1f}") for p in self.evaluated[-1:]),
            Tile("Agent steps", _short(last.actor_steps), frames),
            Tile("Learner steps", _short(last.learner_steps)),
            *levels,
        ]

    def tile(self) -> Tile:
        """The tile of one game among several."""
        points = self.trained or self.evaluated
        known = (f"{points[-1].mean:,.1f}", f"± {points[-1].std:,.1f}") if points else ("–", "no episode yet")
        return Tile(self._game, *known)


def _record_sections(facts: RunFacts) -> list[Section]:
    """How the run was set up, and how to go on with it."""
    record = [("Go on", facts.command), ("Commit", facts.commit)]
    rows = [row for row in record if row[1]]
    settings = Table(("Flag", "This run", "Default"), facts.settings)
    note = "flags that differ from their defaults"
    return [
        *([Section(settings, "Settings", note)] if facts.settings else []),
        *([Section(Table((), rows), "Go on, or repeat", wide=True)] if rows else []),
    ]


def rooms_figure(run: RunHistory) -> go.Figure:
    """A stair with a step for each room, which names it; upward how many rooms were known."""
    first = dict(sorted(run.first_visits.items(), key=lambda item: item[1]))
    known = list(range(1, len(first) + 1))
    stair = go.Scatter(
        x=[*first.values(), run.actor_steps],
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
        "xaxis": titled({**STEPS, **RULER}, "agent steps"),
        "yaxis": titled(AXIS, "rooms known", range=[0, len(first) + 0.8], dtick=1),
    }
    return go.Figure([stair, rooms], layout)


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
        if count >= 0.9995 * size:  # what is rounded up to three digits of it
            return f"{count / size:.3g} {unit}"
    return str(count)
