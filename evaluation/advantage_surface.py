"""Draws the advantages A(s, a) that a snapshot's agent sees around its chosen action, frame by frame.

python -m evaluation.advantage_surface --model results/last_model_maze_1_100000.pth --every 20
python -m evaluation.advantage_surface --model FILE --event-log random.events --frames 10,50,200
python -m evaluation.advantage_surface --model FILE --images room.png corridor.png --dimensions 0,1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from args import Args, UserError, parse_args
from envs import EnvConfig, EnvDescription, environment_seeds
from evaluation.scenes import Scene, scenes_of_images, scenes_of_log, scenes_of_play
from reporting.advantage import HEIGHT, Mark, Surface, write_advantage_html
from reporting.page import BROWSERS, StillError, find_browser, write_still
from wiring import Setting, canonical, restore_agent, say_plainly, sentences_for_errors

POINTS = 41
"""Values that each drawn component takes between its bounds."""
FRAMES = 6
"""Frames drawn where no list of them is given."""
MAX_FRAMES = 12
"""A browser draws about 16 three-dimensional figures at once."""
STILL_WIDTH = 1400


@runtime_checkable
class SeesAdvantages(Protocol):
    """An agent of continuous actions that can say what it thinks of any of them."""

    def greedy(self, s_t: NDArray[Any]) -> NDArray[Any]:
        """s_t [N, H, *frame] -> [N, A]."""

    def advantages(self, s_t: NDArray[Any], actions: NDArray[Any]) -> NDArray[Any]:
        """s_t [N, H, *frame], actions [M, A] -> [N, M]."""


def surface_of(
    agent: SeesAdvantages, scene: Scene, components: Sequence[int], description: EnvDescription
) -> Surface:
    """Advantages along the components that are drawn; all others stay as in the greedy action."""
    bounds = (np.array(bound, np.float32) for bound in (description.action_low, description.action_high))
    low, high = (bound[components] for bound in bounds)
    values = list(np.linspace(low, high, POINTS, dtype=np.float32).T)
    greedy = agent.greedy(scene.s_t[None])[0]

    def seen(points: NDArray[Any]) -> NDArray[Any]:
        """[M, D] -> [M]."""
        actions = np.tile(greedy, (len(points), 1))
        actions[:, components] = points
        return np.asarray(agent.advantages(scene.s_t[None], actions)[0])

    grid = np.stack(np.meshgrid(*values), axis=-1)  # [X, 1], or [Y, X, 2]
    advantages = seen(grid.reshape(-1, len(values))).reshape(grid.shape[:-1])
    marked = {"chosen": greedy} if scene.taken is None else {"chosen": greedy, "taken": scene.taken}
    marks = [
        Mark(name, action[components], float(seen(action[None, components])[0]))
        for name, action in marked.items()
    ]
    return Surface(scene.name, scene.picture, scene.s_t[-1].ravel(), values, advantages, marks)


def draw(own: argparse.Namespace, args: Args) -> None:
    """Write the page, and a still picture of it where a browser is installed."""
    if not args.model:
        raise UserError("Name a snapshot with --model.")
    agent, setting, _ = restore_agent(Path(args.model), args)
    if not isinstance(agent, SeesAdvantages):
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
    _draw_still(page, len(surfaces))


def _draw_still(page: Path, frames: int) -> None:
    browser, picture = find_browser(), page.with_suffix(".png")
    if browser is None:
        print(f"No still picture was taken: none of {', '.join(BROWSERS)} is installed.")
        return
    rows = -(-frames // 2)  # two cards side by side
    try:
        write_still(browser, page, picture, STILL_WIDTH, height=100 + rows * (HEIGHT + 56))
        print(f"Saved {picture}.")
    except StillError as error:
        print(f"No still picture was taken: {error}")


def _scenes(own: argparse.Namespace, agent: SeesAdvantages, setting: Setting) -> list[Scene]:
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
    """Those of --dimensions, or the first two, or the only one."""
    size = len(description.action_low or ())
    components: list[int] = own.dimensions or list(range(min(size, 2)))
    if len(components) not in (1, 2) or len(set(components)) < len(components) or max(components) >= size:
        raise UserError(f"--dimensions takes one or two different numbers from 0 to {size - 1}.")
    return components


def _numbers(text: str) -> list[int]:
    if not all(word.isdecimal() for word in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers as 10,50,200.")
    return [int(word) for word in text.split(",")]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0.")
    return int(text)


def _own_flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.advantage_surface",
        description="The advantages that a snapshot's agent sees around its chosen action, frame by frame.",
        epilog="Takes every flag of test_multiple_seed.py too, of which --model is required."
        " Without --event-log and --images the agent plays an episode from --seed itself.",
        allow_abbrev=False,
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--event-log", type=Path, help="take frames from this event log")
    source.add_argument("--images", type=Path, nargs="+", help="take these pictures for frames")
    parser.add_argument("--frames", type=_numbers, help="steps of the log or the episode, as 10,50,200")
    parser.add_argument(
        "--every",
        type=_positive,
        default=25,
        metavar="K",
        help=f"without --frames: every K-th step, {FRAMES} at most (default: 25)",
    )
    parser.add_argument(
        "--dimensions",
        type=_numbers,
        help="components of the action to draw: two, as 0,1, or one (default: the first two)",
    )
    parser.add_argument(
        "--output", type=Path, help="the page (default: advantage_surface_<game>.html in --path-to-results)"
    )
    return parser


def run(argv: Sequence[str]) -> None:
    """What the command line asks for; a user's mistake ends the process with one sentence and exit code 2."""
    own, others = _own_flags().parse_known_args(argv)
    args = parse_args(others)
    with sentences_for_errors():
        draw(own, canonical(args))


if __name__ == "__main__":
    say_plainly()
    run(sys.argv[1:])
