"""Builds the agent of a snapshot, in the setting that it was trained in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from agents.base import Agent
from args import Args
from learning.snapshot import Snapshot, SnapshotError, check_holds, check_origin, load_snapshot
from wiring.setting import Setting, build_agent, set_up_torch, setting_of


class Restored(NamedTuple):
    """An agent that can act."""

    agent: Agent
    setting: Setting
    snapshot: Snapshot


def games_to_play(args: Args) -> tuple[str, ...]:
    """Those of --game, where it was given; else those of the snapshot of --model. Raises SnapshotError."""
    if args.model and "game" not in args.model_fields_set:
        snapshot = load_snapshot(Path(args.model))
        check_holds(Path(args.model), snapshot, ("settings",))
        return _games_of(Path(args.model), snapshot)
    return args.games


def restore_agent(path: Path, args: Args) -> Restored:
    """The agent of a snapshot, in the environment it was trained in as far as no flag says otherwise.

    Raises SnapshotError where the snapshot cannot be read or is of another game or agent than was asked for,
    EnvError and AgentError.
    """
    snapshot = load_snapshot(path)
    check_holds(path, snapshot, ("settings", "acting_weights"))
    given = {name: getattr(args, name) for name in args.model_fields_set}
    if "agent" in given:
        check_origin(path, snapshot, {"agent": given["agent"]})
    if "game" in given and not args.transfer and given["game"] not in _games_of(path, snapshot):
        check_origin(path, snapshot, {"game": given["game"]})
    setting = setting_of(args.with_defaults(snapshot["settings"]))
    agent = build_agent(setting.args, setting.problem, learning=False)
    set_up_torch(setting.args, agent)
    agent.load_acting_weights(snapshot["acting_weights"])
    return Restored(agent, setting, snapshot)


def _games_of(path: Path, snapshot: Snapshot) -> tuple[str, ...]:
    game = snapshot["settings"].get("game")
    if not isinstance(game, str):
        raise SnapshotError(f"The snapshot {path} is damaged: its settings name no game.")
    return tuple(game.split(","))
