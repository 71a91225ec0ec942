"""The words of the page: runs at a glance, and their settings side by side."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from args import Args
from evaluation.settings import ReportingSettings
from live.settings import PageSettings
from live.watch import KnownRun
from memory.runs.reports import Status
from memory.settings import RedisSettings
from wiring.settings import DeviceSettings, RunSettings

UNKNOWN = "–"
HEADER = (
    "run", "game", "agent", "state", "agent steps", "steps/s", "updates", "mean score", "replay",
    "weights’ age", "last heard",
)  # fmt: skip
ELSEWHERE = RunSettings, RedisSettings, DeviceSettings, ReportingSettings, PageSettings
"""Groups of settings that say where and how a run is played: seed, places, devices and outputs."""
LEARNED_BY = {"game", "agent", "T_max", "model", "event_log_in"}
"""Settings among these that learning depends on: T_max sets schedules, the last two are its beginning."""
MAY_DIFFER = {name for kind in ELSEWHERE for name in kind.model_fields} - LEARNED_BY
"""Settings in which runs that are averaged may differ."""


def row_of(run: KnownRun) -> list[str]:
    """Cells under HEADER."""
    settings = run.settings
    first = [run.label, ", ".join(run.games), str(settings.get("agent", UNKNOWN))]
    if run.server is None:
        return [*first, "on disk", *[UNKNOWN] * 7]
    learner, actors, counters = run.server.learner, run.server.actors.values(), run.server.counters
    spoken = max((float(status["time"] or 0) for status in (learner, *actors) if status), default=0.0)
    ages = [age for status in actors if isinstance(age := status.get("weights_age"), float)]
    t_max = settings.get("T_max")
    return [
        *first,
        state_of(run),
        f"{counters.played:,}" + (f" / {t_max:,}" if isinstance(t_max, int) else ""),
        _shown(learner, "steps_per_second", ",.0f"),
        _shown(learner, "updates", ",.0f"),
        _shown(learner, "mean_score", ",.1f"),
        _shown(learner, "replay_fill", ".0%"),
        f"{max(ages):.0f} s" if ages else UNKNOWN,
        f"{max(time.time() - spoken, 0):,.0f} s ago" if spoken else "never",
    ]


def state_of(run: KnownRun) -> str:
    """What its learner does; with the warning that it publishes."""
    if run.server is None or not run.server.learner_lives:
        return "finished" if run.server is not None and run.server.counters.finished else "stopped"
    state, warning = str(run.server.learner.get("state", "starting")), run.server.learner.get("warning")
    return f"{state} ⚠ {warning}" if warning else state


def groups_of(runs: Sequence[KnownRun]) -> dict[str, list[KnownRun]]:
    """Runs that differ in nothing that learning depends on but the seed, under one label each."""
    found: dict[tuple[tuple[str, str], ...], list[KnownRun]] = {}
    for run in runs:
        key = {name: value for name, value in run.settings.items() if name not in MAY_DIFFER}
        found.setdefault(tuple(sorted((name, repr(value)) for name, value in key.items())), []).append(run)
    labels = dict[str, list[KnownRun]]()
    for group in found.values():
        one = group[0]
        label = one.label if len(group) == 1 else f"{one.settings.get('agent')}, {len(group)} runs"
        labels[label if label not in labels else f"{label} like {one.label}"] = group
    return labels


def settings_rows(runs: Sequence[KnownRun], all_of_them: bool) -> list[list[str]]:
    """A row for each setting in which the runs differ, or that is no default where there is one run: its name
    and a cell for each run. Or for every setting.
    """
    names = sorted({name for run in runs for name in run.settings})
    rows = [[name, *(_cell(run.settings, name) for run in runs)] for name in names]
    return [
        row for row in rows if all_of_them or len({*row[1:], *([_default(row[0])] * (len(runs) == 1))}) > 1
    ]


def _default(name: str) -> str:
    return str(Args.model_fields[name].default) if name in Args.model_fields else UNKNOWN


def _cell(settings: Mapping[str, Any], name: str) -> str:
    return str(settings[name]) if name in settings else UNKNOWN


def _shown(status: Status, name: str, form: str) -> str:
    value = status.get(name)
    return f"{value:z{form}}" if isinstance(value, int | float) else UNKNOWN  # z: no -0.0


def living(runs: Iterable[KnownRun]) -> list[KnownRun]:
    """Those whose learner is alive."""
    return [run for run in runs if run.server is not None and run.server.learner_lives]
