"""One vector step of acting: stack frames, act (or act at random), step the environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from agents.base import Acting, Agent, RolloutActing
from agents.random_agent import RandomPolicy
from envs.contract import SeededVectorEnv


class VectorStep(NamedTuple):
    """What happened in N environments; rows with `active` False only restarted and hold no transition."""

    frames: NDArray[Any]  # [N, *frame] the frame acted from
    acting: Acting | RolloutActing | None  # None in random warm-up
    a_t: NDArray[Any]  # [N] int64 | [N, A] float32
    rewards: NDArray[np.float64]  # [N] raw
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    active: NDArray[np.bool_]  # [N]
    next_frames: NDArray[Any]  # [N, *frame] the frame after the step
    infos: Mapping[str, Any]  # of the environments, [N] per name


class FrameStack:
    """The last H frames of N environments, oldest first, with zero frames before an episode's first."""

    def __init__(self, num_envs: int, history: int, frame_shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._stack = np.zeros((num_envs, history, *frame_shape), dtype)

    def push(self, frames: NDArray[Any], first: NDArray[np.bool_]) -> NDArray[Any]:
        """Append the newest frame of every environment.

        Args:
          frames: [N, *frame].
          first: [N], True where the frame begins an episode: the frames before it become zero.

        Returns:
          [N, H, *frame] the states, a view of this object's own memory that the next push overwrites.
        """
        self._stack[:, :-1] = self._stack[:, 1:]
        self._stack[first, :-1] = 0
        self._stack[:, -1] = frames
        return self._stack

    def state_dict(self) -> dict[str, Any]:
        """The frames."""
        return {"stack": self._stack.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self._stack[...] = state["stack"]


class Player:
    """N environments and the agent that plays them, with the random generators of both."""

    def __init__(
        self, agent: Agent, env: SeededVectorEnv, history_length: int, seed: int, noisy: bool = True
    ) -> None:
        """`noisy` False: act without the agent's noise."""
        self.agent, self._env = agent, env
        self._numpy = np.random.default_rng(seed)
        self._torch = torch.Generator().manual_seed(seed)
        self._random_policy = _random_policy(env.single_action_space)
        space = env.single_observation_space
        assert space.dtype is not None
        self._stack = FrameStack(env.num_envs, history_length, space.shape, space.dtype)
        self._noisy = noisy
        noise = agent.draw_acting_noise(env.num_envs, self._torch)
        self._noise = noise if noisy else agent.mean_acting_noise(env.num_envs)
        self._steps = 0
        self.frames, _ = env.reset()  # [N, *frame] the current frames
        self._first = np.ones(env.num_envs, np.bool_)
        self._ended = np.zeros(env.num_envs, np.bool_)

    @property
    def num_envs(self) -> int:
        """N."""
        return int(self._env.num_envs)

    def step(self, at_random: bool) -> VectorStep:
        """Act once in every environment; `at_random`: uniformly, without asking the agent."""
        frames, active = self.frames, ~self._ended
        s_t = self._stack.push(frames, self._first)
        acting = None if at_random else self._act(s_t)
        a_t = self._random_policy.draw(self.num_envs, self._numpy) if acting is None else acting.a_t
        self.frames, rewards, terminated, truncated, infos = self._env.step(a_t)
        self._first, self._ended = self._ended, terminated | truncated
        return VectorStep(frames, acting, a_t, rewards, terminated, truncated, active, self.frames, infos)

    def close(self) -> None:
        """Close the environments."""
        self._env.close()

    def state_dict(self) -> dict[str, Any] | None:
        """Environments, frames and generators; None where the environments cannot be saved."""
        environments = self._env.state_dict()
        if environments is None:
            return None
        return {
            "environments": environments,
            "numpy": self._numpy.bit_generator.state,
            "torch": self._torch.get_state(),
            "stack": self._stack.state_dict(),
            "noise": {name: values.clone() for name, values in self._noise.items()},
            "steps": self._steps,
            "frames": self.frames.copy(),
            "first": self._first.copy(),
            "ended": self._ended.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()` of a player of the same kind."""
        self._env.load_state_dict(state["environments"])
        self._numpy.bit_generator.state = state["numpy"]
        self._torch.set_state(state["torch"])
        self._stack.load_state_dict(state["stack"])
        self._noise = {name: state["noise"][name].to(own.device) for name, own in self._noise.items()}
        self._steps, self.frames = state["steps"], state["frames"]
        self._first, self._ended = state["first"], state["ended"]

    def _act(self, s_t: NDArray[Any]) -> Acting | RolloutActing:
        if self._noisy and self._steps % self.agent.acting_noise_period == 0:
            self._noise = self.agent.next_acting_noise(self._noise, self._first, self._torch)
        self._steps += 1
        return self.agent.act(s_t, self._noise)


def _random_policy(space: gymnasium.Space[Any]) -> RandomPolicy:
    if isinstance(space, gymnasium.spaces.Discrete):
        return RandomPolicy(int(space.n), None, None)
    assert isinstance(space, gymnasium.spaces.Box)
    return RandomPolicy(None, space.low, space.high)
