"""One vector step of acting: stack frames, act (or act at random), step the environments."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from agents.base import Acting, ActingNoise, Agent, RolloutActing
from envs.config import description_from_spaces
from envs.contract import SeededVectorEnv
from envs.legal import RandomPolicy
from envs.saving import Saved


class VectorStep(NamedTuple):
    """What happened in N environments; rows with `active` False only restarted and hold no transition."""

    frames: NDArray[Any]  # [N, *frame] the frame acted from
    acting: Acting | RolloutActing | None  # None in random warm-up
    a_t: NDArray[Any]  # [N] int64 | [N, A] float32, whatever integers or floats the agent gave
    rewards: NDArray[np.float64]  # [N] raw
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    active: NDArray[np.bool_]  # [N]
    next_frames: NDArray[Any]  # [N, *frame] the frame after the step
    infos: Mapping[str, Any]  # of the environments, [N] per name


class FrameStack(Saved):
    """The last H frames of N environments, oldest first, with zero frames before an episode's first."""

    SAVED = ("_stack",)

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


class Player(Saved):
    """N environments and the agent that plays them, with the random generators of both."""

    SAVED: ClassVar[tuple[str, ...]] = (
        "_environments", "_numpy", "_torch", "_stack", "_noise", "_steps", "frames", "_first", "_ended"
    )  # fmt: skip

    def __init__(
        self, agent: Agent, env: SeededVectorEnv, history_length: int, seed: int, noisy: bool = True
    ) -> None:
        """`noisy` False: act without the agent's noise."""
        self.agent, self._environments = agent, env
        self._numpy = np.random.default_rng(seed)
        self._torch = torch.Generator().manual_seed(seed)
        space = env.single_observation_space
        actions = description_from_spaces(space, env.single_action_space)
        self._random_policy = RandomPolicy(
            actions.num_actions, actions.action_low, actions.action_high, env.masked
        )
        assert space.dtype is not None
        self._stack = FrameStack(env.num_envs, history_length, space.shape, space.dtype)
        self._noisy = noisy
        noise = agent.draw_acting_noise(env.num_envs, self._torch)
        self._noise = noise if noisy else agent.mean_acting_noise(env.num_envs)
        self._steps = 0
        self._asked_at: float | None = None
        self.frames, _ = env.reset()  # [N, *frame] the current frames
        self._first = np.ones(env.num_envs, np.bool_)
        self._ended = np.zeros(env.num_envs, np.bool_)

    def step(self, at_random: bool) -> VectorStep:
        """Act once in every environment; `at_random`: uniformly, without asking the agent."""
        frames, active = self.frames, ~self._ended
        s_t = self._stack.push(frames, self._first)
        if at_random:
            acting, a_t = None, self._random_policy.draw(frames, self._numpy)
        else:
            if self._noisy and self._steps % self.agent.acting_noise_period == 0:
                self._noise = self.agent.next_acting_noise(self._noise, self._first, self._torch)
            self._steps += 1
            acting = self._act(s_t, self._noise)
            a_t = acting.a_t.astype(self._environments.single_action_space.dtype, casting="same_kind")
        self._asked_at = time.monotonic()
        self.frames, rewards, terminated, truncated, infos = self._environments.step(a_t)
        self._asked_at = None
        self._first, self._ended = self._ended, terminated | truncated
        return VectorStep(frames, acting, a_t, rewards, terminated, truncated, active, self.frames, infos)

    def _act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting | RolloutActing:
        return self.agent.act(s_t, noise)

    def asked_at(self) -> float | None:
        """When the environments began the step that they are in (time.monotonic).

        None between steps, and where a step waits for other players.
        """
        return None if self._environments.waits_for_others else self._asked_at

    def close(self) -> None:
        """Close the environments."""
        self._environments.close()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()` of a player of the same kind, on this one's device."""
        noise = {name: state["noise"][name].to(own.device) for name, own in self._noise.items()}
        super().load_state_dict({**state, "noise": noise})
