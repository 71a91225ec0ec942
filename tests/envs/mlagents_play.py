"""Lets ML-Agents' own Python side play the stand-in, and prints what it saw: PROGRAM PORT ROUNDS.

Runs where mlagents-envs is installed, and needs nothing else of this project. A line of JSON for each round
of decisions: what each body's episode ended with since the last one, and what each body asks with.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from mlagents_envs.base_env import ActionTuple
from mlagents_envs.environment import UnityEnvironment
from mlagents_envs.side_channel.environment_parameters_channel import EnvironmentParametersChannel

BEHAVIOR = "Counters"


def said(steps: Any, number: int) -> list[Any]:
    """Numbers, the sum of the picture, reward."""
    first, second, picture = (observed[number] for observed in steps.obs)
    reward = steps.reward[number] + steps.group_reward[number]
    return [[*first.tolist(), *second.tolist()], round(255 * float(picture.sum())), float(reward)]


def main() -> None:
    """Plays the action (1, round modulo 2) with every body."""
    program, port, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    parameters = EnvironmentParametersChannel()
    env = UnityEnvironment(program, base_port=port, side_channels=[parameters], timeout_wait=60)
    parameters.set_float_parameter("speed", 1.0)
    env.reset()
    number, ends = 0, {}
    while number <= rounds:
        asks, ended = env.get_steps(BEHAVIOR)
        for place, body in enumerate(ended.agent_id):
            ends[int(body)] = [*said(ended, place), bool(ended.interrupted[place])]
        if len(asks):
            seen = {int(body): said(asks, place) for place, body in enumerate(asks.agent_id)}
            forbidden = [[row.tolist() for row in branch] for branch in asks.action_mask]
            print(json.dumps({"asks": seen, "ends": ends, "forbidden": forbidden}))
            chosen = np.tile(np.array([1, number % 2], np.int32), (len(asks), 1))
            env.set_actions(BEHAVIOR, ActionTuple(discrete=chosen))
            number, ends = number + 1, {}
        env.step()
    env.close()


if __name__ == "__main__":
    main()
