"""The family of Gymnasium environments: every registered id, also "module:Id"."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, Space
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from envs.config import EnvConfig, EnvDescription, EnvError, description_from_spaces
from envs.contract import Actions, Family, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Action, Frames, Screen
from envs.saving import State, plain_state, restore_plain
from envs.seeding import checked_seeds

__all__ = ["FAMILY"]

_CLASSIC_CONTROL = "gymnasium.envs.classic_control."
"""Environments whose whole state is plain; physics engines keep theirs where Python cannot see it."""


class GymVector(SeededVectorEnv):
    """N copies stepped in turn in this process: frames uint8 or float32 [N, *frame], their own rewards."""

    def __init__(self, config: EnvConfig, seeds: Sequence[int]) -> None:
        game, count = config.game, len(checked_seeds(seeds, len(seeds)))
        one = partial(_build, game, max_episode_steps=config.max_episode_steps)
        self._envs = SyncVectorEnv([one] * count, autoreset_mode=AutoresetMode.NEXT_STEP)
        frames = _frame_space(self._envs.single_observation_space, game)
        super().__init__(frames, _agent_actions(self._envs.single_action_space, game), seeds)

    def state_dict(self) -> State | None:
        """Returns the state of classic control; None of other environments."""
        if not all(type(env.unwrapped).__module__.startswith(_CLASSIC_CONTROL) for env in self._envs.envs):
            return None
        layers = [[plain_state(layer) for layer in _layers(env)] for env in self._envs.envs]
        return {"vector": plain_state(self._envs), "layers": layers}

    def load_state_dict(self, state: State) -> None:
        """Continues from it."""
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
        return _to_frames(observations), infos

    def _advance(self, actions: Actions) -> Steps:
        env_actions = _to_env_actions(actions, self._envs.single_action_space)
        observations, rewards, terminated, truncated, infos = self._envs.step(env_actions)
        return _to_frames(observations), rewards, terminated, truncated, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the environments."""
        self._envs.close(**kwargs)


class GymPlayback:
    """Replays an episode on the same environment with render_mode="rgb_array".

    Raises:
        EnvError: the environment cannot draw itself.
    """

    def __init__(self, config: EnvConfig, seed: int) -> None:
        self._game = config.game
        self._env = _build(config.game, render_mode="rgb_array")
        (self._seed,) = checked_seeds([seed], 1)

    def first(self) -> Frames:
        """Starts the episode and returns its first frame [*frame]."""
        observation, _ = self._env.reset(seed=self._seed)
        return _to_frames(np.asarray(observation))

    def step(self, action: Action) -> tuple[Frames, list[Screen]]:
        """Returns the frame [*frame] after `action`, and this step's one picture [h, w, 3]."""
        observation, *_ = self._env.step(_to_env_actions(np.asarray(action), self._env.action_space))
        return _to_frames(np.asarray(observation)), [self._picture()]

    def _picture(self) -> Screen:
        try:
            picture = self._env.render()
        except (gymnasium.error.Error, ImportError) as error:
            raise EnvError(f"The environment {self._game} could not be drawn: {error}.") from error
        if not isinstance(picture, np.ndarray):
            raise EnvError(f"The environment {self._game} has no picture to show.")
        return picture


def _build(game: str, render_mode: str | None = None, max_episode_steps: int = 0) -> gymnasium.Env[Any, Any]:
    """With its own time limit where `max_episode_steps` is 0; EnvError names a package that is missing."""
    try:
        return gymnasium.make(game, max_episode_steps or None, render_mode=render_mode)
    except (gymnasium.error.Error, ImportError) as error:
        raise EnvError(f"The environment {game} could not be built: {error}.") from error


def _layers(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """The wrappers from outside in, then the environment itself."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def _frame_space(space: Space[Any], game: str) -> Box:
    """The space of one frame: uint8 for pixels, float32 for any other numbers."""
    if not isinstance(space, Box):
        raise EnvError(f"The observations of {game} are a {type(space).__name__}, but must be a Box.")
    return space if space.dtype == np.uint8 else _as_float32(space)


def _agent_actions(space: Space[Any], game: str) -> Discrete | Box:
    """The agent's actions: discrete ones counted from 0, or bounded numbers [A]."""
    if isinstance(space, Discrete):
        return Discrete(int(space.n))
    if not isinstance(space, Box):
        raise EnvError(f"The actions of {game} are a {type(space).__name__}, but must be Discrete or a Box.")
    if len(space.shape) != 1 or not space.is_bounded():
        raise EnvError(f"The actions of {game} must be one row of bounded numbers, not {space}.")
    return _as_float32(space)


def _to_frames(observations: npt.NDArray[Any]) -> Frames:
    return observations if observations.dtype == np.uint8 else _float32(observations)


def _to_env_actions(actions: npt.NDArray[Any], space: Space[Any]) -> npt.NDArray[Any]:
    return actions + space.start if isinstance(space, Discrete) else actions.astype(space.dtype)


def _as_float32(space: Box) -> Box:
    return Box(_float32(space.low), _float32(space.high), space.shape, np.float32)


def _float32(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # bounds near the end of float64 become infinite
        return values.astype(np.float32)


def _canonical_name(game: str) -> str | None:
    try:
        gymnasium.spec(game)
    except (gymnasium.error.Error, ImportError, ValueError):
        return None
    return game


def _known_names() -> Sequence[str]:
    return tuple(gymnasium.registry)


def _describe(config: EnvConfig) -> EnvDescription:
    env = _build(config.game)
    frames = _frame_space(env.observation_space, config.game)
    actions = _agent_actions(env.action_space, config.game)
    env.close()
    return description_from_spaces(frames, actions)


FAMILY = Family(_canonical_name, _known_names, _describe, GymVector, GymPlayback)
