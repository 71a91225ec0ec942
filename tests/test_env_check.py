"""`python -m envs.check`: what an environment is to the agents here."""

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ONE_THREAD, ROOT
from tests.test_own_code import CORRIDOR

BROKEN = """
import gymnasium
from gymnasium.spaces import Box, MultiDiscrete


class Broken(gymnasium.Env):
    observation_space = Box(-1, 1, (40, 40))
    action_space = MultiDiscrete([2, 3])

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}
"""


def check(*words: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "envs.check", *words]
    ended = subprocess.run(command, cwd=ROOT, env=ONE_THREAD, capture_output=True, text=True, timeout=200)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.slow
def test_what_is_said_of_a_sound_environment(tmp_path: Path) -> None:
    (tmp_path / "my_env.py").write_text(CORRIDOR)
    (tmp_path / "envs.py").write_text("SIZE = 4\n")
    (tmp_path / "models.py").write_text("NAME = 'mine'\n")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "helper.py").write_text("def way(action):\n    return 1 if action else -1\n")
    said = check(f"{tmp_path}/my_env.py:Corridor", "--env-args", '{"size": 3}')
    assert "'last': Discrete(2)): a vector of 3 float32, 1 to a state" in said
    assert "Discrete(2): 2 actions" in said
    assert "checker       passed" in said
    assert "steps per second at random" in said and "torso " not in said
    assert re.search(r"random        scores [-0-9.]+, the mean of [1-9][\d,]* episodes", said)
    assert "agents        iqn, rainbow, dqn, double_dqn, ppo_rnd, reinforce, a2c, ppo, random" in said
    assert "not naf: This agent needs continuous actions" in said
    last = said.splitlines()[-1]
    assert f"--spec specs/classic/cartpole_dqn.yaml --game {tmp_path}/my_env.py:Corridor" in last
    assert last.endswith("""--env-args '{"size": 3}'""")


@pytest.mark.slow
def test_what_is_said_of_one_that_the_checker_refuses(tmp_path: Path) -> None:
    """Its seed is ignored. It can be played all the same."""
    folder = tmp_path / "my envs"
    folder.mkdir()
    (folder / "broken.py").write_text(BROKEN)
    said = check(f"{folder}/broken.py:Broken")
    assert f"--game '{folder}/broken.py:Broken'" in said.splitlines()[-1]
    assert "an image of 40 x 40 float32, 4 to a state" in said
    assert "torso         nature makes 64 features of 40x40; --resize and --torso change that" in said
    flat = check(f"{folder}/broken.py:Broken", "--torso", "mlp")
    assert "torso    " not in flat, "it has no convolutions"
    assert "MultiDiscrete([2 3]): 6 actions" in said
    assert "checker       failed: AssertionError" in said
    assert " steps at random; --max-episode-steps sets an end" in said
    assert "specs/atari/rainbow_iqn_cpu.yaml" in said.splitlines()[-1]


@pytest.mark.slow
def test_the_last_line_has_every_flag_that_was_given(tmp_path: Path) -> None:
    """Nothing is said of the wrappers of a registered id, which the check adds itself."""
    said = check("Taxi-v4", "--info-masks", "True", "--max-episode-steps", "50")
    flags = "--game Taxi-v4 --info-masks True --max-episode-steps 50"
    assert said.splitlines()[-1].endswith(f"--spec specs/classic/cartpole_dqn.yaml {flags}")
    assert "checker       passed" in said and "WARN" not in said
    own = check("CartPole-v1", "--agent", "ppo").splitlines()[-1]
    assert own.endswith("--spec specs/classic/cartpole_ppo.yaml --game CartPole-v1 --agent ppo")
    (tmp_path / "mine.yaml").write_text("agent: ppo\n")
    mine = check("CartPole-v1", "--spec", f"{tmp_path}/mine.yaml").splitlines()[-1]
    assert mine.endswith(f"start_learning_atari.sh --game CartPole-v1 --spec {tmp_path}/mine.yaml")


@pytest.mark.slow
def test_no_command_starts_what_no_agent_learns(tmp_path: Path) -> None:
    """One of its numbers has a single value."""
    actions = "Box(np.float32([1, 0]), np.float32([1, 1]))"
    fixed = BROKEN.replace("MultiDiscrete([2, 3])", actions)
    (tmp_path / "fixed.py").write_text(f"import numpy as np\n{fixed}")
    last = check(f"{tmp_path}/fixed.py:Broken").splitlines()[-1]
    assert last == "  start         none: no agent here learns to play it"


@pytest.mark.slow
def test_an_environment_with_a_spec_of_its_own_begins_with_that() -> None:
    pytest.importorskip("mujoco")
    assert "--spec specs/classic/halfcheetah_naf.yaml --game" in check("HalfCheetah-v5").splitlines()[-1]


def test_a_mistake_is_one_sentence() -> None:
    assert "error: Name an environment first" in check(code=2)
    assert "error: There is no file none.py" in check("none.py:Env", code=2)
    assert "error: maze:1 comes with this repository, and every program plays it" in check("maze:1", code=2)


@pytest.mark.slow
def test_a_game_for_several_players() -> None:
    """Gymnasium's checker does not know those; the rest is said of them too."""
    path = Path(__file__).parent / "values" / "pebbles.py"
    command = [sys.executable, "-m", "envs.check", f"{path}:Pebbles"]
    said = subprocess.run(command, cwd=path.parents[2], capture_output=True, text=True, check=True).stdout
    assert "a game for several players by turns" in said and "a vector of 7 float32" in said
    assert f"--spec specs/multi/connect_four.yaml --game {path}:Pebbles" in said
    assert "steps per second at random" in said and re.search(r"games +[\d,]+ games ended in", said)


def test_a_game_whose_seats_leave_early_is_found_out() -> None:
    said = check("pettingzoo:knights_archers_zombies_v11", code=2)
    assert "error: A seat of pettingzoo:knights_archers_zombies_v11 is out before the others" in said


def test_help_is_short_and_there_at_once() -> None:
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = check("--help")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert said.startswith("Says what an environment is") and "--env-args" in said
    assert said.count("\n") < 20
    assert used.ru_utime + used.ru_stime - began.ru_utime - began.ru_stime < 1.0
