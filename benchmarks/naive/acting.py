"""An actor in the seed's manner: one environment, one state per pass, further passes for priorities."""

from __future__ import annotations

from collections import deque

import numpy as np
import torch
from numpy.typing import NDArray

from agents.learning import TensorBatch
from benchmarks.naive.learner import NaiveLearner
from benchmarks.naive.replay import Step
from envs.contract import SeededVectorEnv

NOISE_HELD = 4
"""Steps for which one draw of noise serves: the seed's replay frequency."""


class NaiveActor:
    """Plays one environment."""

    def __init__(
        self, learner: NaiveLearner, env: SeededVectorEnv, history_length: int, quantiles: int
    ) -> None:
        """`quantiles`: K, averaged to choose an action."""
        self._learner, self._env, self._quantiles = learner, env, quantiles
        self._stack: deque[NDArray[np.uint8]] = deque(maxlen=history_length)
        self._frame = env.reset()[0][0]
        self._timestep, self._steps = 0, 0

    @torch.no_grad()
    def step(self) -> Step:
        """Look, act, step."""
        if self._timestep == 0:
            self._stack.extend([np.zeros_like(self._frame)] * (self._stack.maxlen or 0))
        self._stack.append(self._frame)
        if self._steps % NOISE_HELD == 0:
            self._learner.online.keep_noise(self._learner.online.draw_noise())
        self._steps += 1
        state = torch.from_numpy(np.stack(self._stack)).unsqueeze(0)
        action = int(self._learner.online(state, torch.rand(1, self._quantiles)).mean(1).argmax(1))
        frames, rewards, terminated, truncated, _ = self._env.step(np.array([action]))
        ended = bool(terminated[0] or truncated[0])
        step = Step(self._timestep, self._frame, action, float(np.clip(rewards[0], -1, 1)), ended)
        self._timestep += 1
        if ended:  # the environments restart in the step after an episode's end
            frames, self._timestep = self._env.step(np.array([0]))[0], 0
        self._frame = frames[0]
        return step


def transitions_of(steps: list[Step], history_length: int, multi_step: int, discount: float) -> TensorBatch:
    """An actor's buffer as n-step transitions: those of all but the first H - 1 and the last n steps."""
    first, count = history_length - 1, len(steps) - history_length - multi_step + 1
    frames = torch.from_numpy(np.stack([step.frame for step in steps]))
    rewards = torch.tensor([step.reward for step in steps])
    alive = torch.tensor([float(not step.terminal) for step in steps])
    r_t, discount_t = torch.zeros(count), torch.ones(count)
    for ahead in range(multi_step):
        r_t += discount_t * rewards[first + ahead : first + ahead + count]
        discount_t *= discount * alive[first + ahead : first + ahead + count]
    stacks = frames.unfold(0, history_length, 1).movedim(-1, 1)  # [len(steps) - H + 1, H, *frame]
    actions = torch.tensor([step.action for step in steps])[first : first + count]
    s_tm1, s_t = stacks[:count], stacks[multi_step : multi_step + count]
    return TensorBatch(s_tm1, actions, r_t, discount_t, s_t, torch.ones(count))
