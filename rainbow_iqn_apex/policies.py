"""A snapshot's policy, and what it estimates."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from acting.player import FrameStack
from args import UserError, checked_args
from envs.config import EnvConfig
from envs.gym.own import ForSeveral, unfitted
from envs.gym.pictures import frame_of
from envs.gym.spaces import fitted, own_action
from envs.legal import without_forbidden
from evaluation.evaluator import evaluate
from evaluation.policies import AgentPolicy, EpsilonPolicy, Policy
from own_code.code import imported_code
from wiring.code import canonical
from wiring.setting import Setting, restore_agent

_ARGUMENTS = (
    (r"--(game|agent) (\S+:\w+)", r'\1="\2"'),
    (r"--env-args '(.*)'", r"env_args=\1"),
    (r"--changed-code", "changed_code=True"),
    (r"--(game|agent)", r"\1"),
)
"""Patterns of flags in a sentence, each with what a caller of `load_policy` gives instead."""


class Look(NamedTuple):
    """What an agent makes of one observation."""

    action: Any  # as the environment takes it
    values: NDArray[np.float32]  # [A] expected returns; NaN where the rules of a game forbid the action
    quantiles: NDArray[np.float32]  # [K, A] of the returns; one row where the agent knows the mean alone


class LoadedPolicy:
    """Takes observations of one episode in their order; `reset` before the next episode's first."""

    def __init__(self, agent: Any, setting: Setting, noisy: bool, seed: int) -> None:
        args, env = setting.args, setting.description
        self.settings = args.model_dump()
        self._agent, self._seed, self._config = agent, seed, args.select(EnvConfig)
        self._policy = AgentPolicy(agent, args.history_length, noisy)
        self._evaluated: Policy = self._policy
        if args.evaluation_epsilon:
            self._evaluated = EpsilonPolicy(self._policy, env, args.evaluation_epsilon)
        self._stack = FrameStack(1, args.history_length, env.frame_shape, env.frame_dtype)
        self._frame, self._masked = (env.frame_shape, env.frame_dtype), env.masked
        self._game = _Game(self._config)
        self._episodes = 0
        self._policy.begin(1)
        self.reset()

    def reset(self) -> None:
        """An episode begins with the next observation."""
        self._policy.start(0, self._seed + self._episodes)
        self._episodes += 1
        self._first = True

    def __call__(self, observation: Any) -> Any:
        """The action, as the environment takes it."""
        return self._game.action(self._policy.act(self._state(observation))[0])

    def look(self, observation: Any) -> Look:
        """The action, and values by the means of noisy layers. AgentError where there are none."""
        state = self._state(observation).copy()
        action = self._game.action(self._policy.act(state)[0])
        with torch.inference_mode():
            seen = self._agent.estimates(torch.from_numpy(state)).cpu().numpy()  # [1, K, A]
        (quantiles,) = without_forbidden(seen, state) if self._masked else seen
        return Look(action, quantiles.mean(0), quantiles)

    def play(self, episodes: int = 10, seed: int = 123) -> NDArray[np.float64]:
        """The scores of fixed episodes, as test_multiple_seed.py plays them."""
        played = evaluate(self._evaluated, self._config, episodes, seed, min(episodes, 16))
        self._policy.begin(1)
        self.reset()
        return np.array(played.scores)

    def _state(self, observation: Any) -> NDArray[Any]:
        shape, dtype = self._frame
        try:
            frame = np.asarray(self._game.frame(observation), dtype)
        except (TypeError, ValueError, LookupError) as error:
            raise ValueError(f"This is no observation of {self._config.game}: {error}.") from error
        if frame.shape != shape:
            raise ValueError(f"An observation of {self._config.game} becomes {shape}, not {frame.shape}.")
        state = self._stack.push(frame[None], np.array([self._first]))
        self._first = False
        return state


class _Game:
    """From the environment's own observations and to its own actions; other games are as they are."""

    def __init__(self, config: EnvConfig) -> None:
        self._inner: gymnasium.Env[Any, Any] | None = None
        if imported_code(config.game) is not None or config.game in gymnasium.registry:
            with suppress(ForSeveral):  # whose frames come as they are
                self._inner = unfitted(config)
                self._outer = fitted(self._inner, config)

    def frame(self, observation: Any) -> Any:
        return observation if self._inner is None else frame_of(self._outer, self._inner, observation)

    def action(self, action: Any) -> Any:
        if self._inner is None:
            return int(action) if np.ndim(action) == 0 else action
        return own_action(self._outer, self._inner, action)


def _as_arguments(sentence: str) -> str:
    for flag, argument in _ARGUMENTS:
        sentence = re.sub(flag, argument, sentence)
    return sentence


def load_policy(
    path: str | Path,
    game: str | None = None,
    agent: str | None = None,
    env_args: Mapping[str, Any] | None = None,
    noisy: bool | None = None,
    seed: int = 123,
    changed_code: bool = False,
) -> LoadedPolicy:
    """The policy of a snapshot, for observations as its environment gives them (Atari: frames 84 x 84).

    Args:
        game: an environment of your own, which a snapshot only names: "my_env.py:MyEnv". Its file is run.
        agent: the same of an agent of your own.
        env_args: the arguments of that environment.
        noisy: whether it acts with its exploration noise; as in its evaluation where it is not given.
        changed_code: the file of your own may be another than the one that the snapshot was made with.

    Raises:
        ValueError: one sentence; the snapshot cannot be read, or needs code that was not given.
    """
    own = {"env_args": env_args and json.dumps(env_args), "changed_code": changed_code}
    flags = {"game": game, "agent": agent, **own}
    args = canonical(checked_args({name: value for name, value in flags.items() if value}))
    threads = torch.get_num_threads()
    try:
        restored = restore_agent(Path(path), args)
    except UserError as error:
        raise UserError(_as_arguments(str(error))) from error
    torch.set_num_threads(threads)  # those of the caller's program
    noisy = restored.eval_noise if noisy is None else noisy
    return LoadedPolicy(restored.agent, restored.setting, noisy, seed)
