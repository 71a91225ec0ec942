"""Says what an environment is to the agents here: python -m envs.check path/to/my_env.py:MyEnv [--FLAG VALUE]

From another folder, with this repository in ~/rainbow: python ~/rainbow/envs/check.py my_env.py:MyEnv
Gymnasium's own checker runs, random play is timed, each agent is tried, and the last line is a command to
start with. An id of Gymnasium's (CartPole-v1) and my_package.envs:MyEnv are environments too. Flags are those
of launch_learner.py, as

  --env-args '{"size": 5}'    arguments of the environment
  --resize 84 --grey          smaller images, without colours
  --max-episode-steps 1000    where episodes do not end
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from pathlib import Path

    sys.path[0] = str(Path(__file__).resolve().parents[1])  # as a file it runs from any folder
    from supervision.process import begin_program

    if {"--help", "-h"}.intersection(sys.argv):  # at once: the imports below take seconds
        print(__doc__.strip())
        sys.exit()
    begin_program()

import contextlib
import os
import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

from agents.base import AgentError
from agents.registry import AGENTS
from args import Args, UserError, parse_args
from envs.config import EnvConfig, EnvDescription, failure_of_close
from envs.gym.own import ForSeveral, unfitted
from envs.multi.trial import try_game
from envs.registry import family_name
from models.layers import IMAGE_TORSOS, resolve_torso
from models.torso import Torso
from own_code.folder_imports import ROOT
from supervision.process import raise_on_interrupt
from wiring.code import canonical
from wiring.endings import exit_on_errors
from wiring.setting import Setting, build_agent, setting_of
from wiring.starting.game_specs import GYMNASIUMS, spec_of

TIMED_S = 1.0
SEVERAL_TIMED_S = 10.0
"""How long (seconds) games of several players are tried: some show only at a seat's last life that they
cannot be played here.
"""
WRAPPED = "is different from the unwrapped version"
"""Part of a warning that is not shown: an environment is checked as it is played, with the wrappers that
`make` or its user adds.
"""
LEARNERS = frozenset(AGENTS) - {"random"}
NOBODY = "none: no agent here learns to play it"
OF_IMAGES = {True: "specs/atari/rainbow_iqn_cpu.yaml", False: "specs/maze/naf_cpu.yaml"}
"""Discrete actions or not -> a spec to begin with that two cores are enough for."""


def report(args: Args, flags: Sequence[str] = ()) -> list[str]:
    """The lines to print, `flags` in the last one.

    Raises EnvError where nobody could play it, UserError where it needs no check.
    """
    setting = setting_of(args)
    if (family := family_name(args.game)) == "multi":
        return _report_of_several(args, setting, flags)
    if family not in GYMNASIUMS:
        raise UserError(
            f"{args.game} comes with this repository, and every program plays it: a check is for your own"
            " environments, Gymnasium's (CartPole-v1) and PettingZoo's."
        )
    config = setting.args.select(EnvConfig)
    try:
        env = unfitted(config)
    except ForSeveral:
        return _report_of_several(args, setting, flags)
    seen, taken = env.observation_space, env.action_space
    able, unable = _agents(setting)
    return [
        args.game,
        f"  observations  {seen}: {_frames(setting.description)}",
        *(f"  torso         {line}" for line in _torsos(setting)),
        f"  actions       {taken}: {_actions(setting.description)}",
        *(f"  checker       {line}" for line in _checked(env)),
        *(f"  {line}" for line in _played(setting)),
        *(f"  {line}" for line in _fits(able, unable)),
        f"  start         {_command(args, setting.description, flags) if LEARNERS & set(able) else NOBODY}",
    ]


def _report_of_several(args: Args, setting: Setting, flags: Sequence[str]) -> list[str]:
    by_turns = setting.description.by_turns
    spec = ROOT / "specs" / ("multi/connect_four.yaml" if by_turns else "classic/cartpole_dqn.yaml")
    return [
        f"{args.game}, a game for several players {'by turns' if by_turns else 'that move at the same time'}",
        f"  observations  {_frames(setting.description)}",
        f"  actions       {_actions(setting.description)}",
        *(f"  {line}" for line in _tried(setting)),
        *(f"  {line}" for line in _fits(*_agents(setting))),
        f"  start         {_start(spec, flags)}  (docs/multi.md)",
    ]


def _tried(setting: Setting) -> list[str]:
    """How fast random play is. Raises EnvError where the game does what cannot be played here."""
    steps, scores, took = try_game(setting.args.select(EnvConfig), setting.description, SEVERAL_TIMED_S)
    games = len(scores)
    ended = "no game" if not games else f"{games:,} game{'s' if games > 1 else ''}"
    return [
        f"speed         {steps / took:,.0f} steps per second at random, one game at a time",
        f"games         {ended} ended in {steps:,} steps at random",
    ]


def _frames(description: EnvDescription) -> str:
    shape = " x ".join(map(str, description.frame_shape))
    kind = "a vector" if len(description.frame_shape) == 1 else "an image"
    return f"{kind} of {shape} {description.frame_dtype}, {description.history_length} to a state"


def _torsos(setting: Setting) -> list[str]:
    """What the convolutions of --torso make of each picture."""
    args, description = setting.args, setting.description
    pictures = [shape for shape in (description.frame_shape, *description.parts) if len(shape) > 1]
    lines = []
    for picture in pictures:
        shape = args.history_length, *picture
        torso, seen = resolve_torso(args.torso, shape), "x".join(map(str, picture))
        if torso not in IMAGE_TORSOS:
            continue
        with contextlib.suppress(ValueError):  # each agent says below that it is too small
            features = Torso(torso, shape, "float32", args.hidden_size).num_features
            lines.append(f"{torso} makes {features:,} features of {seen}; --resize and --torso change that")
    return lines


def _actions(description: EnvDescription) -> str:
    if description.num_actions is not None:
        return f"{description.num_actions} actions"
    return f"a row of {len(description.action_low or ())} numbers"


def _checked(env: gymnasium.Env[object, object]) -> list[str]:
    """What Gymnasium's checker says of it, line by line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(env, skip_render_check=True)
            verdict = "passed"
        except Exception as error:
            verdict = f"failed: {type(error).__name__}: {error}"
        unclosed = failure_of_close(env)
    warned = (
        " ".join(str(each.message).replace("\x1b[33m", "").replace("\x1b[0m", "").split())
        for each in caught
        if WRAPPED not in str(each.message)
    )
    closing = [f"close() failed: {unclosed}"] if unclosed else []
    return [verdict, *dict.fromkeys(warned), *closing]


def _played(setting: Setting) -> list[str]:
    """How fast it is at random, and how it scores."""
    steps, scores, took = try_game(setting.args.select(EnvConfig), setting.description, TIMED_S)
    speed = f"speed         {steps / took:,.0f} steps per second at random, one environment"
    if not scores:
        return [
            speed,
            f"episodes      none ended in {steps:,} steps at random; --max-episode-steps sets an end",
        ]
    return [speed, f"random        scores {np.mean(scores):.4g}, the mean of {len(scores):,} episodes"]


def _agents(setting: Setting) -> tuple[list[str], list[str]]:
    """The agents that can play it, and why the others cannot."""
    able, unable = [], []
    for name in AGENTS:
        try:
            build_agent(setting.args.model_copy(update={"agent": name}), setting.problem, learning=False)
            able.append(name)
        except (AgentError, ValueError) as error:
            unable.append(f"not {name}: {error}")
    return able, unable


def _fits(able: Sequence[str], unable: Sequence[str]) -> list[str]:
    return [f"agents        {', '.join(able)}", *(f"              {line}" for line in unable)]


def _command(args: Args, description: EnvDescription, flags: Sequence[str]) -> str:
    discrete = description.num_actions is not None
    usual = {} if "agent" in args.model_fields_set else {"agent": "dqn" if discrete else "naf"}
    spec = spec_of(args.model_copy(update=usual)) or ROOT / OF_IMAGES[discrete]
    return _start(None if args.spec else spec, flags)


def _start(spec: Path | None, flags: Sequence[str]) -> str:
    program = os.path.relpath(ROOT / "start_learning_atari.sh")
    named = [] if spec is None else ["--spec", os.path.relpath(spec)]
    return shlex.join(["bash", program, *named, "--game", "GAME", *flags])


def main(argv: Sequence[str]) -> None:
    """Entry point."""
    with exit_on_errors():
        if not argv or argv[0].startswith("-"):
            raise UserError("Name an environment first: python -m envs.check path/to/my_env.py:MyEnv")
        args = parse_args(["--game", *argv])
        told = "\n".join(report(canonical(args), argv[1:]))
        print(told.replace("--game GAME", f"--game {shlex.quote(argv[0])}"))


if __name__ == "__main__":
    raise_on_interrupt()
    main(sys.argv[1:])
