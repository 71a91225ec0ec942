"""Any Gymnasium environment, N copies stepped in turn in this process."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from envs.config import EnvConfig, EnvError
from envs.contract import Actions, Flags, Frames, Infos, SeededVectorEnv, Steps, checked_seeds
from envs.gym.spaces import agent_actions, frame_space, to_env_actions, to_frames
from envs.saving import State, plain_state, restore_plain

_CLASSIC_CONTROL = "gymnasium.envs.classic_control."
"""Environments whose whole state is plain; physics engines keep theirs where Python cannot see it."""


def build(game: str, render_mode: str | None = None, max_episode_steps: int = 0) -> gymnasium.Env[Any, Any]:
    """Builds one environment of Gymnasium; where `max_episode_steps` is 0, with its own time limit.

    Raises:
        EnvError: Gymnasium cannot build it, mostly for want of a package, which the sentence names.
    """
    try:
        return gymnasium.make(game, max_episode_steps or None, render_mode=render_mode)
    except (gymnasium.error.Error, ImportError) as error:
        raise EnvError(f"The environment {game} could not be built: {error}.") from error


class GymVector(SeededVectorEnv):
    """N copies of one Gymnasium environment: frames uint8 or float32 [N, *frame], its own rewards."""

    def __init__(self, config: EnvConfig, seeds: Sequence[int]) -> None:
        game, count = config.game, len(checked_seeds(seeds, len(seeds)))
        one = partial(build, game, max_episode_steps=config.max_episode_steps)
        self._envs = SyncVectorEnv([one] * count, autoreset_mode=AutoresetMode.NEXT_STEP)
        frames = frame_space(self._envs.single_observation_space, game)
        super().__init__(frames, agent_actions(self._envs.single_action_space, game), seeds)

    def state_dict(self) -> State | None:
        """Of classic control; None of others."""
        if not all(type(env.unwrapped).__module__.startswith(_CLASSIC_CONTROL) for env in self._envs.envs):
            return None
        layers = [[plain_state(layer) for layer in _layers(env)] for env in self._envs.envs]
        return {"vector": plain_state(self._envs), "layers": layers}

    def load_state_dict(self, state: State) -> None:
        """Goes on from it."""
        restore_plain(self._envs, state["vector"])
        for env, layers in zip(self._envs.envs, state["layers"], strict=True):
            for layer, saved in zip(_layers(env), layers, strict=True):
                restore_plain(layer, saved)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        all_seeds: list[int | None] = [None] * self.num_envs
        if seeds is not None:
            for row, seed in zip(np.flatnonzero(mask), seeds, strict=True):
                all_seeds[row] = seed
        observations, infos = self._envs.reset(seed=all_seeds, options={"reset_mask": mask})
        return to_frames(observations), infos

    def _advance(self, actions: Actions) -> Steps:
        env_actions = to_env_actions(actions, self._envs.single_action_space)
        observations, rewards, terminated, truncated, infos = self._envs.step(env_actions)
        return to_frames(observations), rewards, terminated, truncated, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the environments."""
        self._envs.close(**kwargs)


def _layers(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """The wrappers from outside in, then the environment itself."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env
