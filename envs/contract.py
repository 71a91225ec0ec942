"""What every environment of this room keeps to, and the checks that all of them share.

* An observation is one frame per environment, [N, *frame], uint8 or float32; stacking is left to the caller.
* Every environment has its own seed. `reset()` starts all of them from the seeds given at construction;
  `reset(seed=[…], options={"reset_mask": bool [N]})` restarts the marked ones at once, with one seed for each
  marked environment in their order, and cancels an autoreset that was pending there.
* Autoreset is Gymnasium's NEXT_STEP: the step that ends an episode returns its last frame; the next step
  ignores that environment's action and returns the next episode's first frame, with reward 0 and both flags
  False. That step is no transition.
* Where there are rooms, infos["room"] of `reset` and `step` is int64 [N]: the room of every frame returned.
* Actions are checked before they reach the environment (ale-py 0.12.1 hangs on one that is out of range).
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from envs.config import EnvError
from envs.saving import State

Frames = npt.NDArray[np.uint8 | np.float32]
Actions = npt.NDArray[np.int64 | np.float32]
Rewards = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Infos = dict[str, Any]  # Gymnasium's type
Action = int | npt.NDArray[np.float32]  # of one environment
Screen = npt.NDArray[np.uint8]  # [h, w, 3], RGB
Steps = tuple[Frames, Rewards, Flags, Flags, Infos]

MAX_SEED = 2**31 - 1  # ALE keeps a seed in a signed 32-bit integer, and takes -1 for "draw one"


class Playback(Protocol):
    """One episode replayed from its seed and its actions, with pictures a person can watch."""

    def first(self) -> Frames:
        """Starts the episode and returns its first frame [*frame], as the vector environment shows it."""

    def step(self, action: Action) -> tuple[Frames, list[Screen]]:
        """Returns the frame [*frame] after `action`, and the RGB pictures [h, w, 3] uint8 of that step."""


class SeededVectorEnv(VectorEnv[Frames, Actions, npt.NDArray[np.float64 | np.bool_]]):
    """A vector environment with one seed per environment; see the module's text for its contract.

    Args:
        frame_space: the space of one frame of one environment.
        action_space: the actions of one environment, counted from 0 where they are discrete.
        seeds: one integer in [0, 2^31) per environment.

    Raises:
        EnvError: there is no seed, or one is out of range.
    """

    single_observation_space: Box
    single_action_space: Discrete | Box

    def __init__(self, frame_space: Box, action_space: Discrete | Box, seeds: Sequence[int]) -> None:
        self._seeds = checked_seeds(seeds, len(seeds))
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

        Without seeds a full reset takes those given at construction; a partial one goes on with the random
        generators of the environments it restarts.

        Raises:
            EnvError: `seed` is not one integer per restarted environment, or the mask does not fit.
        """
        mask = (options or {}).get("reset_mask")
        if mask is None:
            mask, seed = np.ones(self.num_envs, np.bool_), self._seeds if seed is None else seed
        self._check_mask(mask)
        seeds = None if seed is None else checked_seeds(seed, int(mask.sum()))
        self._started = True
        return self._restart(mask, seeds)

    def step(self, actions: npt.ArrayLike) -> Steps:
        """Takes one action per environment, [N] integers or [N, A] floats.

        Returns:
            frames [N, *frame], rewards float64 [N], terminated bool [N], truncated bool [N], infos.

        Raises:
            EnvError: an action does not fit, or nothing was reset before.
        """
        if not self._started:
            raise EnvError("An environment must be reset before its first step.")
        return self._advance(self._checked(np.asarray(actions)))

    def state_dict(self) -> State | None:
        """All that later steps depend on, as plain values and arrays; None where it cannot be had."""
        return None

    def load_state_dict(self, state: State) -> None:
        """Goes on, after a reset, from `state_dict()` of another vector of the same kind and size.

        Raises:
            EnvError: the state is of something else.
        """
        raise EnvError("This environment cannot go on from a saved state.")

    @abstractmethod
    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        """Starts a new episode in the marked environments and leaves the others as they are."""

    @abstractmethod
    def _advance(self, actions: Actions) -> Steps:
        """Does what `step` promises with actions that were checked."""

    def _check_mask(self, mask: object) -> None:
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise EnvError(f"A reset mask must be a boolean array of shape ({self.num_envs},).")
        if not mask.any():
            raise EnvError("A reset mask must mark at least one environment.")
        if not (self._started or mask.all()):
            raise EnvError("The first reset must be one of all environments.")

    def _checked(self, actions: npt.NDArray[Any]) -> Actions:
        if actions.shape != self.action_space.shape:
            raise EnvError(f"Actions must have the shape {self.action_space.shape}, not {actions.shape}.")
        space = self.single_action_space
        if isinstance(space, Box):
            return _checked_continuous(actions, space)
        if not np.issubdtype(actions.dtype, np.integer) or (actions < 0).any() or (actions >= space.n).any():
            raise EnvError(f"Actions must be integers from 0 to {space.n - 1}, not {actions.tolist()}.")
        return actions.astype(np.int64)


def checked_seeds(seeds: int | Sequence[int], count: int) -> list[int]:
    """Returns `count` seeds as a list of plain integers in [0, 2^31).

    Raises:
        EnvError: a single integer, another number of seeds, none at all, or one out of range.
    """
    if isinstance(seeds, int) or len(seeds) != count:
        raise EnvError(f"Each environment needs its own seed: {count} are due, {seeds} was given.")
    if count == 0:
        raise EnvError("At least one environment, with its seed, is needed.")
    for seed in seeds:
        if not 0 <= seed <= MAX_SEED:
            raise EnvError(f"An environment's seed must lie between 0 and {MAX_SEED}, not {seed}.")
    return [int(seed) for seed in seeds]


def _checked_continuous(actions: npt.NDArray[Any], space: Box) -> npt.NDArray[np.float32]:
    taken = actions.astype(np.float32)
    if not ((taken >= space.low) & (taken <= space.high)).all():  # False for NaN too
        raise EnvError(
            f"Actions must lie between {space.low.tolist()} and {space.high.tolist()}, not {taken.tolist()}."
        )
    return taken
