"""The family of Gymnasium environments: every registered id. A user's own ones are in own.py beside."""

import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Dict
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from envs.config import (
    RAISED,
    EnvConfig,
    EnvDescription,
    EnvError,
    EnvFailure,
    close_each,
    description_from_spaces,
    failure_of,
)
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.gym.parts import FlatObservation, parts_of
from envs.gym.pictures import Env, layers
from envs.gym.rules import MASK, ends_with_rules
from envs.gym.spaces import env_actions, fitted, space_of_actions, space_of_frames, to_float32
from envs.playback import Action, Frames, Screen, drawn, not_repeated
from envs.registry import FAMILY_SETTINGS, Family
from envs.saving import State, plain_state, restore_plain
from own_code.code import raised_in

__all__ = ["FAMILY"]
log = logging.getLogger(__name__)

_CLASSIC_CONTROL = "gymnasium.envs.classic_control."
"""Package of the environments whose whole state is plain; physics engines keep theirs where Python cannot see
it.
"""
EXTRAS = "mujoco", "box2d"
"""Gymnasium's extras that this project has under the same names."""
UNPACKS = __name__, "gymnasium.vector.sync_vector_env", "gymnasium.wrappers.common", "gymnasium.core"
"""Modules that take apart what an environment returns."""
Build = Callable[[EnvConfig, str | None], Env]
"""Makes one environment with a render mode, its spaces as agents know them."""


def build_registered(config: EnvConfig, render_mode: str | None = None) -> Env:
    """The environment of a registered id, fitted to the agents. Raises EnvError."""
    return fitted(make_registered(config, render_mode), config)


def make_registered(config: EnvConfig, render_mode: str | None = None, name: str = "") -> Env:
    """The environment of a registered id, `name` or the game; its own time limit unless one is given.

    Raises:
        EnvError: it cannot be built; a package that is missing is named.
    """
    steps, arguments = config.max_episode_steps or None, constructor_arguments(config)
    if "max_episode_steps" in arguments:
        raise EnvError(
            "--env-args cannot set max_episode_steps of a registered id: --max-episode-steps does."
        )
    if render_mode is not None:
        arguments["render_mode"] = render_mode
    try:
        return gymnasium.make(name or config.game, steps, **arguments)
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        extra = next((each for each in EXTRAS if f"gymnasium[{each}]" in str(error)), None)
        if extra:
            raise EnvError(
                f"{config.game} needs the extra {extra}: `EXTRAS={extra} bash scripts/setup.sh` gets it."
            ) from error
        raise EnvError(f"The environment {config.game} could not be built: {error}.") from error


def constructor_arguments(config: EnvConfig) -> dict[str, Any]:
    """The arguments in --env-args. Raises EnvError."""
    try:
        arguments = json.loads(config.env_args or "{}")
    except ValueError as error:
        raise EnvError(f"--env-args {config.env_args} is no JSON: {error}.") from error
    if not isinstance(arguments, dict):
        raise EnvError(f"--env-args must be a JSON object, as '{{\"size\": 5}}', not {config.env_args}.")
    return arguments


def describe_built(env: Env) -> EnvDescription:
    """Describes an environment that was built for it."""
    frames, actions = space_of_frames(env.observation_space), space_of_actions(env.action_space)
    env.close()
    described = description_from_spaces(frames, actions)
    return replace(described, parts=parts_of(env), masked=ends_with_rules(env))


class Copies(SyncVectorEnv[Any, Any]):
    """Keeps of the infos only whether they have a mask: nobody reads more, and what copies say may not fit
    into one array.
    """

    def _add_info(self, vector_infos: Infos, env_info: Infos, env_num: int) -> Infos:
        return {MASK: True} if MASK in env_info else vector_infos


class GymVector(SeededVectorEnv):
    """N copies stepped in turn in this process: frames uint8 or float32 [N, *frame], their own rewards."""

    def __init__(self, config: EnvConfig, seeds: Sequence[int], build: Build = build_registered) -> None:
        one = partial(build, config, None)
        self._envs = Copies([one] * len(seeds), autoreset_mode=AutoresetMode.NEXT_STEP)
        frames = space_of_frames(self._envs.single_observation_space)
        super().__init__(frames, space_of_actions(self._envs.single_action_space), seeds)
        self.masked, self._has_warned = ends_with_rules(self._envs.envs[0]), False

    def state_dict(self) -> State | None:
        """Returns the state of classic control; None of other environments."""
        if not all(type(env.unwrapped).__module__.startswith(_CLASSIC_CONTROL) for env in self._envs.envs):
            return None
        saved = [list(map(plain_state, layers(env))) for env in self._envs.envs]
        return {"vector": plain_state(self._envs), "layers": saved}

    def load_state_dict(self, state: State) -> None:
        """Continues from it."""
        restore_plain(self._envs, state["vector"])
        for env, saved in zip(self._envs.envs, state["layers"], strict=True):
            for layer, own in zip(layers(env), saved, strict=True):
                restore_plain(layer, own)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        all_seeds: list[int | None] = [None] * self.num_envs
        if seeds is not None:
            for row, seed in zip(np.flatnonzero(mask), seeds, strict=True):
                all_seeds[row] = seed
        try:
            observations, infos = self._envs.reset(seed=all_seeds, options={"reset_mask": mask})
        except (TypeError, ValueError) as error:
            raise self._explained(error, "reset must return observation and info") from error
        self._warn_of_rules(infos)
        return _to_frames(observations), {}

    def _warn_of_rules(self, infos: Infos) -> None:
        """Warn once of a mask that is not obeyed, as agents must know it from the spaces."""
        is_shown = _shows_mask(self._envs.envs[0])
        if self.masked or self._has_warned or not (is_shown or MASK in infos):
            return
        says = "says in its info which actions are legal: --info-masks True obeys that."
        if is_shown:
            says = f"shows an {MASK} that is not obeyed: it has no number for each of a Discrete's actions."
        log.warning("%s %s", self.game, says)
        self._has_warned = True

    def _advance(self, actions: Actions) -> Steps:
        taken = env_actions(actions, self._envs.single_action_space)
        try:
            observations, rewards, terminated, truncated, _ = self._envs.step(taken)
        except (TypeError, ValueError) as error:
            wanted = "step must return observation, reward (one number), terminated, truncated and info"
            raise self._explained(error, wanted) from error
        return _to_frames(observations), rewards, terminated, truncated, {}

    def _explained(self, error: TypeError | ValueError, wanted: str) -> Exception:
        """The error to raise: it says what was wrong with what the environment returned, as NumPy's does not.

        `wanted`: "step must return ...".
        """
        promised = self.single_observation_space.shape
        for env, seen in zip(self._envs.envs, self._envs._env_obs, strict=True):
            if isinstance(seen, np.ndarray) and seen.shape != promised:
                return EnvFailure(
                    f"The environment {self.game} is at fault: {type(env.unwrapped).__name__} returned an"
                    f" observation of the shape {seen.shape}, and its space has {promised}."
                )
        if raised_in(error) in UNPACKS:
            return EnvFailure(f"The environment {self.game} is at fault: its {wanted} ({error}).")
        return error

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the environments."""
        self._envs.closed = True  # or it would close them again when it is deleted
        close_each(self._envs.envs, self.game)


class GymPlayback:
    """Replays an episode on the same environment with render_mode="rgb_array".

    Raises:
        EnvError: the environment cannot draw itself, or the episode ends before its last action.
        EnvFailure: the environment raised an error of its own.
    """

    def __init__(self, config: EnvConfig, seed: int, build: Build = build_registered) -> None:
        os.environ.setdefault("MUJOCO_GL", "egl")  # MuJoCo then draws without a display ...
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # ... and pygame, without a complaint either
        self._game = config.game
        self._env, self._seed = build(config, "rgb_array"), seed

    def first(self) -> Frames:
        """Starts the episode and returns its first frame [*frame]."""
        try:
            observation, _ = self._env.reset(seed=self._seed)
        except RAISED as error:
            raise failure_of(self._game, error) from error
        self._is_over = False
        return _to_frames(np.asarray(observation))

    def step(self, action: Action) -> tuple[Frames, list[Screen]]:
        """Returns the frame [*frame] after `action`, and this step's one picture [h, w, 3]."""
        if self._is_over:
            raise EnvError(not_repeated(self._game))
        try:
            taken = env_actions(np.asarray(action), self._env.action_space)
            observation, _, terminated, truncated, _ = self._env.step(taken)
        except RAISED as error:
            raise failure_of(self._game, error) from error
        self._is_over = bool(terminated or truncated)
        return _to_frames(np.asarray(observation)), [drawn(self._env.render, self._game)]

    def close(self) -> None:
        """Closes the environment."""
        close_each([self._env], self._game)


def _shows_mask(env: Env) -> bool:
    """Whether its observations have one, before they become a vector."""
    flat = next((layer for layer in layers(env) if isinstance(layer, FlatObservation)), None)
    space = None if flat is None else flat.env.observation_space
    return isinstance(space, Dict) and MASK in space.spaces


def _to_frames(observations: npt.NDArray[Any]) -> Frames:
    return observations if observations.dtype == np.uint8 else to_float32(observations)


def _canonical_name(game: str) -> str | None:
    """Raises EnvError for an id like Pong-v4, which would be played without ALE's family and SABER."""
    try:
        spec = gymnasium.spec(game)
    except (gymnasium.error.Error, ImportError, ValueError):
        return None
    if ":" in game:
        return None
    if _is_ales(spec):
        ale_game = spec.kwargs["game"]
        raise EnvError(
            f"{game} would be played without SABER's rules: --game {ale_game} is the same ALE game."
        )
    return game


def _is_ales(spec: EnvSpec) -> bool:
    return str(spec.entry_point).startswith("ale_py")


def _known_names() -> Sequence[str]:
    """Without ids like Pong-v4, which are refused."""
    known = gymnasium.registry.items()
    return [name for name, spec in known if name[:4] == "ALE/" or not _is_ales(spec)]


def _describe(config: EnvConfig) -> EnvDescription:
    return describe_built(build_registered(config))


FAMILY = Family(_canonical_name, _known_names, _describe, GymVector, GymPlayback, reads=FAMILY_SETTINGS)
