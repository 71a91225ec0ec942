"""The interface of every environment: read this page to add one.

A game belongs to a family (Atari, mazes, Gymnasium …). A family is a module of envs/ with one object FAMILY:
functions that recognise a game's name, describe its observations and actions, and build it. To add a family,

1. write envs/<family>.py, or envs/<family>/__init__.py where it takes several files;
2. derive the N environments of one actor from SeededVectorEnv: its `_restart` and `_advance` do the work, its
   `reset` and `step` check seeds, masks and actions first. A game that only knows itself and is steered by
   turning and moving needs less: give N of them to envs/solo.py;
3. make FAMILY from five functions, and add the module's name to FAMILIES in envs/registry.py;
4. add a game to GAMES in tests/envs/test_contract.py, which checks all that follows. envs/probe/catch.py is a
   complete example of 65 lines.

The rules:

* An observation is one frame per environment, [N, *frame], uint8 (pixels) or float32 (other numbers). The
  caller stacks frames. A reward is the game's own: the caller clips it. Arrays that were returned are never
  written to again.
* Every environment has its own seed, and the same seeds and actions give the same episodes, whatever the
  neighbours do. `reset()` starts all environments from the seeds given at construction;
  `reset(seed=[…], options={"reset_mask": bool [N]})` restarts the marked ones at once, with one seed for each
  in their order, and cancels an autoreset that was pending there.
* Autoreset is Gymnasium's NEXT_STEP. The step that ends an episode returns its last frame, with terminated
  (the task is over: its value is 0) or truncated (a time limit: the value is bootstrapped). The next step
  ignores that environment's action and returns the next episode's first frame, with reward 0 and both flags
  False. That step is no transition.
* In a game with rooms, infos["room"] of `reset` and `step` is int64 [N]: the room of every frame returned.
* Actions are checked before they reach the environment (ale-py 0.12.1 hangs on one that is out of range).
* An environment whose runs may be resumed exactly returns all that later steps depend on from `state_dict`.
* A package that not everybody has is imported when an environment is built, and not to describe one. Whatever
  the user may do wrong is an EnvError of one sentence.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from envs.config import EnvConfig, EnvDescription, EnvError
from envs.playback import Frames, Playback
from envs.saving import State
from envs.seeding import checked_seeds

Actions = npt.NDArray[np.int64 | np.float32]
Rewards = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Infos = dict[str, Any]  # Gymnasium's type
Steps = tuple[Frames, Rewards, Flags, Flags, Infos]


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

        Without seeds a full reset takes those given at construction; a partial one leaves the random
        generators of the environments it restarts as they are.

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
        if isinstance(space, Discrete):
            if not np.issubdtype(actions.dtype, np.integer) or not (
                0 <= actions.min() <= actions.max() < space.n
            ):
                raise EnvError(f"Actions must be integers from 0 to {space.n - 1}, not {actions.tolist()}.")
            return actions.astype(np.int64)
        actions = actions.astype(np.float32)
        if not ((actions >= space.low) & (actions <= space.high)).all():  # False for NaN too
            raise EnvError(
                f"Actions must lie between {space.low.tolist()} and {space.high.tolist()}, "
                f"not {actions.tolist()}."
            )
        return actions


@dataclass(frozen=True)
class Family:
    """How the games of one kind are named, described, built and replayed.

    The last three functions are only called with `config.game` in the form that `canonical_name` returns.
    """

    canonical_name: Callable[[str], str | None]  # a game's one name; None for a game of another family
    known_names: Callable[[], Sequence[str]]  # what a user may have meant
    describe: Callable[[EnvConfig], EnvDescription]
    make: Callable[[EnvConfig, Sequence[int]], SeededVectorEnv]
    playback: Callable[[EnvConfig, int], Playback]
