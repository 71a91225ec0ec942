"""Puts rules, the "action_mask" of a Dict or of infos, where envs/legal.py has them: last."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Tuple

from envs.config import EnvError
from envs.gym.pictures import Env, layers

MASK = "action_mask"


class RulesSeen(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observations are a Dict of the environment's own, and of the rules in its infos (--info-masks)."""

    def __init__(self, env: Env, game: str) -> None:
        super().__init__(env)
        if not isinstance(env.action_space, Discrete):
            raise EnvError(f"--info-masks is of Discrete actions, which {game} does not have.")
        self._game, self._actions = game, int(env.action_space.n)
        rules = Box(0, 1, (self._actions,), np.float32)
        self.observation_space = Dict({"observation": env.observation_space, MASK: rules})

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        """Raises EnvError where the rules are missing."""
        seen, info = super().reset(**given)
        return self._both(seen, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Raises EnvError where the rules are missing, and the episode goes on."""
        seen, reward, terminated, truncated, info = super().step(action)
        if terminated or truncated:
            info = {MASK: np.ones(self._actions), **info}
        return self._both(seen, info), reward, terminated, truncated, info

    def _both(self, seen: Any, info: dict[str, Any]) -> dict[str, Any]:
        if MASK not in info or np.shape(info[MASK]) != (self._actions,):
            raise EnvError(
                f"--info-masks needs an {MASK} of {self._actions} numbers in each info of {self._game}."
            )
        return {"observation": seen, MASK: info[MASK]}


class RulesLast(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Observations are all other parts, if any, then a float32 for each action, 1.0 where it is legal."""

    def __init__(self, env: Env, game: str) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, Dict) and isinstance(env.action_space, Discrete)
        others = {name: part for name, part in env.observation_space.items() if name != MASK}
        rules = Box(0, 1, (int(env.action_space.n),), np.float32)
        parts: Tuple[Any] = Tuple((Dict(others), rules) if others else (rules,))
        self.observation_space = parts
        self._game = game

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        """Raises EnvError where no action is legal."""
        seen, info = super().reset(**given)
        self._check_some_is_legal(seen)
        return seen, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Raises EnvError where no action is legal, and the episode goes on."""
        seen, reward, terminated, truncated, info = super().step(action)
        if not (terminated or truncated):
            self._check_some_is_legal(seen)
        return seen, reward, terminated, truncated, info

    def _check_some_is_legal(self, seen: Any) -> None:
        if not seen[-1].any():
            raise EnvError(f"In {self._game} no action is legal, and the episode is not over.")

    def observation(self, observation: Any) -> Any:
        """One or two parts."""
        others = {name: part for name, part in observation.items() if name != MASK}
        rules = (np.asarray(observation[MASK]) > 0).astype(np.float32)
        return (others, rules) if others else (rules,)


def has_rules(env: Env) -> bool:
    """Whether each observation says of each discrete action whether it is legal."""
    seen, actions = env.observation_space, env.action_space
    if not (isinstance(seen, Dict) and isinstance(actions, Discrete)):
        return False
    return MASK in seen.spaces and seen[MASK].shape == (actions.n,)


def ends_with_rules(env: Env) -> bool:
    """Whether what `env` shows ends with them."""
    return any(isinstance(layer, RulesLast) for layer in layers(env))
