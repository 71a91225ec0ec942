from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from acting.player import FrameStack, Player, VectorStep
from agents.base import Acting, ActingNoise


def slow_stack(history: list[NDArray[np.uint8]], length: int) -> NDArray[np.uint8]:
    """The last `length` frames of one episode, zeros before its first."""
    missing = [np.zeros_like(history[0])] * (length - len(history))
    return np.stack([*missing, *history[-length:]]) if missing else np.stack(history[-length:])


def test_states_are_the_last_frames_of_their_own_episode() -> None:
    rng = np.random.default_rng(0)
    stack = FrameStack(3, 4, (2, 5), np.uint8)
    episodes: list[list[NDArray[np.uint8]]] = [[], [], []]
    for step in range(60):
        frames = rng.integers(1, 256, size=(3, 2, 5), dtype=np.uint8)
        first = rng.random(3) < (1.0 if step == 0 else 0.2)
        s_t = stack.push(frames, first)
        assert s_t.shape == (3, 4, 2, 5)
        for row in range(3):
            episodes[row] = [*([] if first[row] else episodes[row]), frames[row]]
            np.testing.assert_array_equal(s_t[row], slow_stack(episodes[row], 4))


def test_history_of_one_is_the_frame_itself() -> None:
    stack = FrameStack(2, 1, (3,), np.float32)
    frames = np.arange(6, dtype=np.float32).reshape(2, 3)
    for first in (True, False):
        s_t = stack.push(frames, np.full(2, first))
        assert s_t.dtype == np.float32
        np.testing.assert_array_equal(s_t, frames[:, None])


def test_state_is_a_view_that_the_next_push_overwrites() -> None:
    stack = FrameStack(1, 2, (1,), np.uint8)
    before = stack.push(np.array([[1]], np.uint8), np.array([True]))
    after = stack.push(np.array([[2]], np.uint8), np.array([False]))
    assert np.shares_memory(before, after)
    assert after.tolist() == [[[1], [2]]]


class RecordingAgent:
    """Notes the states and noise that it acts on; its noise is held for three steps."""

    acting_noise_period = 3

    def __init__(self) -> None:
        self.states: list[list[int]] = []
        self.noise: list[int] = []
        self.begins: list[list[bool]] = []

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Replaced before the first step."""
        return {"draw": torch.zeros(rows)}

    def next_acting_noise(
        self, noise: ActingNoise, first: NDArray[np.bool_], generator: torch.Generator
    ) -> ActingNoise:
        """Counts the draws."""
        self.begins.append(first.tolist())
        return {"draw": noise["draw"] + 1}

    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """Action 1 everywhere."""
        self.states.append(s_t[0, :, 0].tolist())
        self.noise.append(int(noise["draw"][0]))
        unknown = np.zeros((len(s_t), 1), np.float32)
        return Acting(np.ones(len(s_t), np.int64), unknown, unknown)


class CountingEnv:
    """Frames count vector steps; the first environment is truncated at step 2, the second terminates at 3."""

    num_envs = 2
    single_observation_space = gymnasium.spaces.Box(0, 255, (1,), np.uint8)
    single_action_space = gymnasium.spaces.Discrete(4)

    masked = False

    def __init__(self) -> None:
        self.steps = 0
        self.actions: list[list[int]] = []

    def reset(self) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """The first frames."""
        return np.full((2, 1), 10, np.uint8), {}

    def step(self, a_t: NDArray[np.int64]) -> tuple[Any, ...]:
        """One vector step."""
        self.steps += 1
        self.actions.append(a_t.tolist())
        frames = np.full((2, 1), 10 + self.steps, np.uint8)
        terminated = np.array([False, self.steps == 3])
        return frames, np.zeros(2), terminated, np.array([self.steps == 2, False]), {}


def _played(env: Any, agent: Any, steps: int, at_random: bool) -> list[VectorStep]:
    player = Player(agent, env, 2, seed=0)
    return [player.step(at_random) for _ in range(steps)]


def test_actions_are_of_one_dtype_whatever_the_agents_are() -> None:
    """Chunks of others are refused; those of the warm-up are right already."""

    class Narrow(RecordingAgent):
        """As it is easy to write."""

        def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
            """Its actions as int32."""
            acting = super().act(s_t, noise)
            return acting._replace(a_t=acting.a_t.astype(np.int32))

    env = CountingEnv()
    for at_random in (True, False):
        steps = _played(env, Narrow(), 2, at_random)
        assert [step.a_t.dtype for step in steps] == [np.int64] * 2
    assert env.actions[-1] == [1, 1]


def test_the_step_after_an_episodes_end_only_restarts() -> None:
    """Whether it terminated or was truncated; the next stack begins with the restart's frame."""
    agent, env = RecordingAgent(), CountingEnv()
    steps = _played(env, agent, 6, at_random=False)
    assert [step.active.tolist() for step in steps] == [
        [True, True], [True, True], [False, True], [True, False], [True, True], [True, True],
    ]  # fmt: skip
    assert [int(step.frames[0, 0]) for step in steps] == [10, 11, 12, 13, 14, 15]
    assert [int(step.next_frames[0, 0]) for step in steps] == [11, 12, 13, 14, 15, 16]
    assert agent.states == [[0, 10], [10, 11], [11, 12], [0, 13], [13, 14], [14, 15]]
    assert env.actions == [[1, 1]] * 6


def test_noise_is_held_for_the_agents_period() -> None:
    agent = RecordingAgent()
    _played(CountingEnv(), agent, 7, at_random=False)
    assert agent.noise == [1, 1, 1, 2, 2, 2, 3]
    assert agent.begins == [[True, True], [True, False], [False, False]]


def test_random_steps_do_not_ask_the_agent() -> None:
    agent, env = RecordingAgent(), CountingEnv()
    steps = _played(env, agent, 60, at_random=True)
    assert agent.states == [] and all(step.acting is None for step in steps)
    assert {action for actions in env.actions for action in actions} == {0, 1, 2, 3}
