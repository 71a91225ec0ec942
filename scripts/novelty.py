"""Are rooms that an agent with RND never saw new to it? Its intrinsic reward there, and where it was.

    python scripts/novelty.py --game montezuma_revenge --model results/last_model_montezuma_revenge_900000.pth

Visited: frames of the snapshot's own play. Held out: those of results/kept/montezuma_rooms.npz whose rooms
are in no episode of the run's table (`<game>.csv` in --path-to-results); a search found them, not training
(Ecoffet et al. 2021, arXiv 2004.12919; its entry `about` names seed, steps and the program).
The predictor with its first weights, those of --seed, is asked too: what merely looks unlike the mean frame
would be new to it as well.
Writes novelty_<game>.json beside the other results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from acting.player import Player  # noqa: E402
from agents.base import Agent, Curious  # noqa: E402
from args import Args, UserError, parse_args  # noqa: E402
from envs.config import EnvConfig  # noqa: E402
from envs.registry import make_env  # noqa: E402
from evaluation.evaluator import episode_seeds  # noqa: E402
from reporting.atomic import write_atomically  # noqa: E402
from reporting.episodes import EpisodeTable  # noqa: E402
from wiring.endings import exit_on_errors, set_up_logging  # noqa: E402
from wiring.restored import restore_agent  # noqa: E402
from wiring.setting import build_agent, canonical  # noqa: E402

FRAMES = ROOT / "results" / "kept" / "montezuma_rooms.npz"
PLAYED_STEPS = 1000
"""In each of --evaluation-envs environments; some episodes."""
EVERY = 10
"""Neighbouring frames are alike: every tenth step's is enough."""


class Shown(NamedTuple):
    """Frames that an agent is asked about."""

    frames: NDArray[np.uint8]  # [M, *frame]
    rooms: NDArray[np.int64]  # [M]


def played(agent: Agent, args: Args) -> Shown:
    """Frames of the agent's own play."""
    seeds = [episode_seeds(args.seed, number).environment for number in range(args.evaluation_envs)]
    player = Player(agent, make_env(args.select(EnvConfig), seeds), args.history_length, args.seed)
    frames, rooms = [], []
    for number in range(PLAYED_STEPS):
        step = player.step(at_random=False)
        if number % EVERY == 0:
            frames.append(step.next_frames)
            rooms.append(step.infos["room"])
    player.close()
    return Shown(np.concatenate(frames), np.concatenate(rooms))


def held_out(visited: set[int]) -> Shown:
    """The kept frames of rooms that no episode came to."""
    with np.load(FRAMES) as kept:
        new = ~np.isin(kept["rooms"], sorted(visited))
        if not new.any():
            raise UserError(
                "The run came to every room of which frames are kept: nothing is new to compare with."
            )
        return Shown(kept["frames"][new], kept["rooms"][new])


def visited_rooms(args: Args) -> set[int]:
    """Rooms of all episodes of the run; UserError where its table tells of none."""
    path = Path(args.path_to_results) / f"{args.file_name}.csv"
    rooms = (
        {room for record in EpisodeTable(path).records for room in record.rooms} if path.exists() else set()
    )
    if not rooms:
        raise UserError(f"{path} tells of no room: name the folder of the run with --path-to-results.")
    return rooms


def judge(agent: Curious, seen: Shown, unseen: Shown) -> dict[str, Any]:
    """Mean intrinsic rewards of each room and of both kinds; how many times higher the unseen ones are."""
    rewards = {
        "visited": agent.intrinsic_rewards(seen.frames),
        "held_out": agent.intrinsic_rewards(unseen.frames),
    }
    by_room = {
        kind: {int(room): float(rewards[kind][shown.rooms == room].mean()) for room in np.unique(shown.rooms)}
        for kind, shown in (("visited", seen), ("held_out", unseen))
    }
    means = {kind: float(each.mean()) for kind, each in rewards.items()}
    return {**means, "times": means["held_out"] / means["visited"], "by_room": by_room}


def novelty(args: Args) -> dict[str, Any]:
    """What the trained and an untrained predictor say."""
    agent, setting, snapshot = restore_agent(Path(args.model or ""), args)
    if not isinstance(agent, Curious):
        raise UserError(f"The agent of {args.model} has no intrinsic reward.")
    visited = visited_rooms(args)
    seen, unseen = played(agent, setting.args), held_out(visited)
    trained = judge(agent, seen, unseen)
    fresh = build_agent(setting.args, setting.problem, learning=False).acting_weights()
    predictor = {name: weight for name, weight in fresh.items() if "rnd.predictor." in name}
    agent.load_acting_weights({**snapshot["acting_weights"], **predictor})
    return {
        "model": args.model,
        "t_actors": snapshot["t_actors"],
        "visited_rooms": sorted(visited),
        "frames": {"visited": len(seen.rooms), "held_out": len(unseen.rooms)},
        "trained": trained,
        "untrained_predictor": judge(agent, seen, unseen),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    set_up_logging()
    args = canonical(parse_args(argv, "How new visited and unvisited rooms are to an agent."))
    with exit_on_errors():
        told = novelty(args)
    for name in ("trained", "untrained_predictor"):
        each = told[name]
        print(
            f"{name.replace('_', ' ')}: visited {each['visited']:.4g}, held out {each['held_out']:.4g},"
            f" {each['times']:.2f} times"
        )
    path = Path(args.path_to_results) / f"novelty_{args.file_name}.json"
    write_atomically(path, json.dumps(told, indent=2).encode() + b"\n")
    print(f"Saved {path}.")


if __name__ == "__main__":
    main()
