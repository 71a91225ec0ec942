"""What the environments of all families derive from; envs/__init__.py has the rules that they keep."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from envs.config import RAISED, EnvError, check_first_frames, failure_of, invalid_actions, unusable_values
from envs.playback import Frames
from envs.saving import State
from envs.seeding import check_mask, checked_seeds

Actions = npt.NDArray[np.int64 | np.float32]
Rewards = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Infos = dict[str, Any]  # Gymnasium's type
Steps = tuple[Frames, Rewards, Flags, Flags, Infos]


class SeededVectorEnv(VectorEnv[Frames, Actions, npt.NDArray[np.float64 | np.bool_]]):
    """A vector environment with one seed per environment; the room's text has its contract.

    Args:
        frame_space: the space of one frame of one environment.
        action_space: the actions of one environment, counted from 0 where they are discrete.
        seeds: one integer in [0, 2^31) per environment, at least one; `make_env` has checked them.
    """

    game = "itself"  # its name in sentences, which make_env gives it
    masked = False  # whether frames end with which actions are legal (envs/legal.py)
    largest_reward = float(np.finfo(np.float64).max)  # what a learner can keep, where an actor says so
    single_observation_space: Box
    single_action_space: Discrete | Box

    def __init__(self, frame_space: Box, action_space: Discrete | Box, seeds: Sequence[int]) -> None:
        self._seeds = list(seeds)
        self.num_envs = len(seeds)
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = frame_space
        self.single_action_space = action_space
        self.observation_space = batch_space(frame_space, self.num_envs)
        self.action_space = batch_space(action_space, self.num_envs)
        self._started = False

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frames, Infos]:
        """Restarts all environments, or those marked in options["reset_mask"] (bool [N]).

        Without seeds a full reset takes those given at construction; a partial one leaves the random
        generators of the environments it restarts as they are.

        Raises:
            EnvError: `seed` is not one integer per restarted environment, or the mask does not fit.
            EnvFailure: the environment raised another error, or showed what nobody can learn from.
        """
        mask = (options or {}).get("reset_mask")
        if mask is None:
            mask, seed = np.ones(self.num_envs, np.bool_), self._seeds if seed is None else seed
        check_mask(mask, self.num_envs, first=not self._started)
        seeds = None if seed is None else checked_seeds(seed, int(mask.sum()))
        self._started = True
        try:
            restarted = self._restart(mask, seeds)
        except RAISED as error:
            raise failure_of(self.game, error) from error
        return check_first_frames(self.game, *restarted)

    def step(self, actions: npt.ArrayLike) -> Steps:
        """Takes one action per environment, [N] integers or [N, A] floats.

        Returns:
            frames [N, *frame], rewards float64 [N], terminated bool [N], truncated bool [N], infos.

        Raises:
            EnvError: an action does not fit, or nothing was reset before.
            EnvFailure: the environment raised another error, or returned what nobody can learn from.
        """
        if not self._started:
            raise EnvError("An environment must be reset before its first step.")
        actions = np.asarray(actions)
        if isinstance(self.single_action_space, Box):
            actions = actions.astype(np.float32)
        if not self.action_space.contains(actions):  # nor NaN
            raise invalid_actions(actions, self.single_action_space, self.num_envs)
        try:
            steps = self._advance(actions.astype(self.action_space.dtype))
        except RAISED as error:
            raise failure_of(self.game, error) from error
        frames, rewards = steps[:2]
        is_kept = np.abs(rewards) <= self.largest_reward  # False for NaN, too
        if not (is_kept.all() and (frames.dtype == np.uint8 or np.isfinite(frames).all())):
            raise unusable_values(self.game, frames, rewards, is_kept)
        return steps

    @property
    def waits_for_others(self) -> bool:
        """Whether a step waits for other players, so that the game does not hang."""
        return False

    def state_dict(self) -> State | None:
        """Returns all that later steps depend on, as plain values and arrays; None where it cannot be had."""
        return None

    def load_state_dict(self, state: State) -> None:
        """Continues, after a reset, from `state_dict()` of another vector of the same kind and size.

        Raises:
            EnvError: the state is of something else.
        """
        raise EnvError("This environment cannot continue from a saved state.")

    @abstractmethod
    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        """Starts a new episode in the marked environments and leaves the others as they are."""

    @abstractmethod
    def _advance(self, actions: Actions) -> Steps:
        """Does what `step` promises with actions that were checked."""
