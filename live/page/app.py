"""The page: choice of runs above, panes below, filled anew every few seconds by the browser's own questions.

>>> app = page_app(watch)
>>> app.server                 # what a web server serves (server.py)

Dash serves all scripts itself: nothing is asked of another machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dash import Dash, Input, Output, State, dcc, html
from dash.exceptions import PreventUpdate

from live.pace import RefreshPace
from live.page.overview import HEADER, living, row_of
from live.page.panes import (
    Children,
    learning_pane,
    replay_pane,
    scores_pane,
    settings_pane,
    sight_pane,
    table_of,
    time_pane,
)
from live.watch import Watch

REFRESH_EVERY_S, SHARE = 5.0, 0.005
"""Seconds between two refreshes of a page in the foreground, and the largest share of a core that refreshes
may take: costly ones are rarer.
"""
CHOSEN = 6
"""Number of chosen runs up to which the page chooses new ones by itself, as they come."""
PANES = {
    "scores": "Scores",
    "learning": "Learning",
    "replay": "Replay",
    "time": "Actors and time",
    "sight": "What the agent sees",
    "settings": "Settings",
}
AVERAGED, EVERY = "averaged", "every"
ANY_ACTOR = "any actor"


def page_app(watch: Watch) -> Dash:
    """The page of what `watch` knows."""
    app = Dash(
        __name__,
        title="Runs",
        update_title="",
        serve_locally=True,
        assets_folder=str(Path(__file__).parents[1] / "assets"),
    )
    app.layout = _layout(watch)
    _add_choice(app, watch)
    _add_pane(app, watch)
    return app


def _layout(watch: Watch) -> Any:
    switches = {AVERAGED: "mean and interval over seeds", EVERY: "every setting"}
    choice = [
        dcc.Checklist(id="switches", options=switches, value=[], inline=True),
        dcc.Dropdown(id="actor", options=[ANY_ACTOR], value=ANY_ACTOR, clearable=False),
    ]
    tabs = [dcc.Tab(label=label, value=name) for name, label in PANES.items()]
    return html.Div(
        [
            html.H1(["Runs ", html.Small(f"on {watch.address}, read only")]),
            html.P(id="trouble"),
            html.Div(id="overview"),
            html.Div(dcc.Checklist(id="chosen", options=[], value=[], inline=True), className="choice"),
            html.Div(choice, className="choice"),
            dcc.Tabs(id="pane", value="scores", children=tabs),
            html.Div(id="content"),
            dcc.Interval(id="clock", interval=REFRESH_EVERY_S * 1000),
        ]
    )


def _add_choice(app: Dash, watch: Watch) -> None:
    """The table of runs, and which of them are chosen: those that learn, as soon as they are known."""
    pace = RefreshPace(SHARE, REFRESH_EVERY_S)

    @app.callback(
        Output("overview", "children"),
        Output("trouble", "children"),
        Output("chosen", "options"),
        Output("chosen", "value"),
        Output("actor", "options"),
        Output("clock", "interval"),
        Input("clock", "n_intervals"),
        State("chosen", "value"),
        State("chosen", "options"),
    )
    def show_runs(_: int | None, chosen: list[str], earlier: list[str]) -> tuple[Any, ...]:
        with watch.lock:
            watch.look()
            runs = watch.runs
            table = table_of(HEADER, [row_of(run) for run in runs], "runs")
            known = [run.label for run in runs]
            fresh = [run.label for run in (living(runs) if earlier else living(runs) or runs)]
            fresh = [label for label in fresh if label not in earlier][: max(CHOSEN - len(chosen), 0)]
            actors = sorted({actor for run in runs if run.server for actor in run.server.actors})
            words = [ANY_ACTOR, *(f"actor {actor}" for actor in actors)]
            shown = [label for label in known if label in [*chosen, *fresh]]
            return table, watch.trouble, known, shown, words, round(pace.rest()) * 1000  # milliseconds


def _add_pane(app: Dash, watch: Watch) -> None:
    """The pane that is looked at, and no other: that costs nothing."""

    @app.callback(
        Output("content", "children"),
        Input("clock", "n_intervals"),
        Input("pane", "value"),
        Input("chosen", "value"),
        Input("switches", "value"),
        Input("actor", "value"),
    )
    def show_pane(_: int | None, pane: str, chosen: list[str], switches: list[str], actor: str) -> Children:
        with watch.lock:
            watch.look()
            return _pane(watch, pane, chosen or [], switches or [], actor)


def _pane(watch: Watch, pane: str, chosen: list[str], switches: list[str], actor: str) -> Children:
    if pane not in PANES:
        raise PreventUpdate
    runs = watch.find(chosen)
    if pane == "scores":
        return scores_pane(runs, AVERAGED in switches)
    if pane == "learning":
        return learning_pane(runs, AVERAGED in switches)
    if pane == "replay":
        return replay_pane(watch, runs)
    if pane == "time":
        return time_pane(runs)
    if pane == "sight":
        number = actor.removeprefix("actor ")
        return sight_pane(watch, runs[0] if runs else None, int(number) if number.isdecimal() else None)
    return settings_pane(runs, EVERY in switches)
