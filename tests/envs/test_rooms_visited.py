"""The number of the room is that of the frame returned, whatever became of the episode."""

from collections.abc import Callable

import numpy as np
import pytest

from envs.atari.game import AleGame
from envs.atari.games import all_games, room_byte
from envs.config import EnvConfig
from envs.registry import make_env

MakeConfig = Callable[..., EnvConfig]

TO_ROOM_2 = (
    "16*4 11 9 2*6 14*5 5*9 6*5 4*8 14*13 10*8 11*3 6*3 16*30 4*9 13*9 4*11 2*7 4*5 2*2 12*20 16*11 7*7 "
    "16 9*13 0*46 15 10*13 17*8 10*8 8*3 17*6 10*16 11 3 13*7 7*6 5*14 3*3 10*8 13*17 3*2 14 15*3 10*12 "
    "8*2 1*2 13*20 0*29 16*5 14*24 10*42 0*8 12*5 10*2 3*15 1*35 5*3 11 2*43 3*9"
)
"""Takes the key of the first room and opens the door to the right; `action*steps`, without sticky actions.

Found by a search among emulator states (Ecoffet et al. 2021, arXiv 2004.12919).
"""


def actions_of(runs: str) -> list[int]:
    pairs = (run.partition("*") for run in runs.split())
    return [int(action) for action, _, steps in pairs for _ in range(int(steps or 1))]


def test_rooms_through_doors_resets_and_stops(make_config: MakeConfig) -> None:
    config = make_config("montezuma_revenge", proba_sticky_actions=0.0, max_stuck_time=25.0)
    env, reference = make_env(config, [1, 1]), AleGame(config)
    reference.reset(1)
    _, infos = env.reset()
    assert infos["room"].dtype == np.int64
    rooms = [infos["room"].tolist()]
    for action in actions_of(TO_ROOM_2):
        _, _, terminated, truncated, infos = env.step(np.array([action, action]))
        reference.step(action)
        rooms.append(infos["room"].tolist())
        assert rooms[-1] == [reference.ale.getRAM()[3]] * 2
        assert not (terminated | truncated).any()
    assert rooms[0] == [1, 1]
    assert rooms[-1] == [2, 2]
    _, infos = env.reset(seed=[4], options={"reset_mask": np.array([True, False])})
    assert infos["room"].tolist() == [1, 2]
    while not truncated[1]:  # 25 s without reward
        _, _, terminated, truncated, infos = env.step(np.array([0, 0]))
        assert infos["room"].tolist() == [1, 2]
        assert not terminated.any()
    assert env.step(np.array([0, 0]))[4]["room"].tolist() == [1, 1]


def test_other_games_tell_of_no_rooms(make_config: MakeConfig) -> None:
    assert [game for game in all_games() if room_byte(game) is not None] == ["montezuma_revenge"]
    for game in ("pitfall", "venture", "gravitar", "private_eye", "solaris"):
        env = make_env(make_config(game, max_episode_steps=3), [1])
        infos = [env.reset()[1], *(env.step(np.array([0]))[4] for _ in range(4))]
        assert not any("room" in info for info in infos)


@pytest.mark.parametrize("game", ["montezuma_revenge", "venture", "CartPole-v1"])
def test_a_cap_of_steps_truncates(game: str, make_config: MakeConfig) -> None:
    env = make_env(make_config(game, action_repeat=3, max_episode_steps=7), [1])
    env.reset()
    for _ in range(2):
        flags = [env.step(np.array([step % 2]))[2:4] for step in range(8)]
        assert not any(terminated for terminated, _ in flags)
        assert [bool(truncated) for _, truncated in flags] == [False] * 6 + [True, False]
