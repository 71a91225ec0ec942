"""What an agent expects of every action, where it has an estimate of that."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Agent, AgentError
from agents.dqn import DqnAgent
from agents.iqn import IqnAgent
from agents.rainbow import RainbowAgent
from agents.wrappers.intrinsic import RndBonusAgent
from envs.legal import legal_actions


@singledispatch
def _built_in(agent: Agent, s_t: Tensor) -> Tensor:
    raise AgentError(
        f"{type(agent).__name__} has no estimate of every action; one of your own gives it by `estimates`."
    )


def estimates(agent: Agent, s_t: Tensor) -> Tensor:
    """Quantiles [N, K, A] of the return at s_t [N, H, *frame], by the means of noisy layers; K = 1: the mean.

    A user's own agent has a method of this name. AgentError where there is none.
    """
    own = getattr(agent, "estimates", None)
    found: Tensor = own(s_t) if own is not None else _built_in(agent, s_t)
    return found


def without_forbidden(found: NDArray[np.float32], states: NDArray[Any]) -> NDArray[np.float32]:
    """Estimates [N, K, A], NaN for actions that the last frames of the states [N, H, *frame] forbid."""
    legal = legal_actions(states[:, -1], found.shape[2])  # [N, A]
    return np.where(legal[:, None], found, np.float32(np.nan))


@_built_in.register
def _(agent: DqnAgent, s_t: Tensor) -> Tensor:
    q: Tensor = agent.online(s_t.to(agent.device))  # [N, A]
    return q.unsqueeze(1)


@_built_in.register
def _(agent: IqnAgent, s_t: Tensor) -> Tensor:
    noise = agent.mean_acting_noise(len(s_t))
    quantiles: Tensor = agent.online(s_t.to(agent.device), noise["taus"], noise)
    return quantiles


@_built_in.register
def _(agent: RainbowAgent, s_t: Tensor) -> Tensor:
    logits: Tensor = agent.online(s_t.to(agent.device), agent.mean_acting_noise(len(s_t)))  # [N, A, Z]
    q: Tensor = logits.softmax(-1) @ agent._support
    return q.unsqueeze(1)


@_built_in.register
def _(agent: RndBonusAgent, s_t: Tensor) -> Tensor:
    return estimates(agent.agent, s_t)
