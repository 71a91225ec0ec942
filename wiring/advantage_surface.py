"""Wires `python -m wiring.advantage_surface`: restores a snapshot's agent and draws its advantages."""

from __future__ import annotations

if __name__ == "__main__":
    from evaluation.advantage_flags import own_flags
    from supervision.process import name_missing_packages

    name_missing_packages()
    own_flags().parse_known_args()  # --help at once: the imports below take seconds

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agents.wrappers.acting_by import ActingBy
from args import Args, UserError, parse_args
from envs.config import EnvConfig, EnvDescription
from envs.seeding import environment_seeds
from evaluation.advantage_flags import FRAMES, own_flags
from evaluation.advantage_page import write_advantage_html
from evaluation.advantage_surface import AdvantageAgent, draw_still, surface_of
from evaluation.scenes import Scene, scenes_of_images, scenes_of_log, scenes_of_play
from supervision.process import set_up_logging
from wiring.code import canonical
from wiring.endings import exit_on_errors
from wiring.setting import Setting, restore_agent

MAX_FRAMES = 12
"""Most frames of a page: a browser draws about 16 three-dimensional figures at once."""


def draw(own: argparse.Namespace, args: Args) -> None:
    """Write the page, and a still picture of it where a browser is installed."""
    if not args.model:
        raise UserError("Name a snapshot with --model.")
    agent, setting, _ = restore_agent(Path(args.model), args)
    agent = agent.agent if isinstance(agent, ActingBy) else agent
    if not isinstance(agent, AdvantageAgent):
        raise UserError(
            f"Advantages of any action are seen by naf alone, and {args.model} is of {setting.args.agent}."
        )
    components = _components(own, setting.description)
    scenes = _scenes(own, agent, setting)
    if len(scenes) > MAX_FRAMES:
        raise UserError(f"A page shows at most {MAX_FRAMES} frames, not {len(scenes)}.")
    surfaces = [surface_of(agent, scene, components, setting.description) for scene in scenes]
    page = own.output or Path(args.path_to_results) / f"advantage_surface_{setting.args.file_name}.html"
    note = f"advantages seen by {setting.args.agent} in {Path(args.model).name}"
    write_advantage_html(page, setting.args.game, surfaces, components, note)
    print(f"Saved {page}.")
    print(draw_still(page, len(surfaces)))


def _scenes(own: argparse.Namespace, agent: AdvantageAgent, setting: Setting) -> list[Scene]:
    args, description = setting.args, setting.description
    if own.images:
        return scenes_of_images(own.images, args.history_length, description)
    steps = sorted(set(own.frames)) if own.frames else range(0, FRAMES * own.every, own.every)
    if own.event_log:
        scenes = scenes_of_log(own.event_log, steps, args.history_length, description)
    else:
        (seed,) = environment_seeds(args.seed, actor=0, start=0, count=1)
        scenes = scenes_of_play(agent.greedy, args.select(EnvConfig), args.history_length, seed, steps)
    if not scenes or (own.frames and len(scenes) < len(steps)):
        raise UserError(f"{own.event_log or 'The episode played'} has no step {steps[len(scenes)]}.")
    return scenes


def _components(own: argparse.Namespace, description: EnvDescription) -> list[int]:
    """The components of --dimensions, or the first two, or the only one."""
    size = len(description.action_low or ())
    components: list[int] = own.dimensions or list(range(min(size, 2)))
    if len(components) not in (1, 2) or len(set(components)) < len(components) or max(components) >= size:
        raise UserError(f"--dimensions takes one or two different numbers from 0 to {size - 1}.")
    return components


def run(argv: Sequence[str]) -> None:
    """Draw what the command line asks for; a user's mistake ends the process with one sentence."""
    own, others = own_flags().parse_known_args(argv)
    args = parse_args(others)
    with exit_on_errors():
        draw(own, canonical(args))


if __name__ == "__main__":
    set_up_logging()
    run(sys.argv[1:])
