"""Settings of an environment, and the description that an agent needs of it."""

import logging
import signal
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from own_code.code import error_text
from parameters.declare import UserError

log = logging.getLogger(__name__)


class EnvError(ValueError):
    """A mistake of the user about an environment; its message is one full sentence."""


class EnvFailure(RuntimeError):
    """An environment raised an error of its own, or returned what is not finite; one full sentence."""


RAISED = Exception, SystemExit, KeyboardInterrupt
"""Exceptions that an environment's code may raise by itself: one made for a window may end its program."""


@dataclass(frozen=True)
class EnvConfig:
    """One environment's settings; field names are the flags', which check the ranges."""

    game: str  # "space_invaders" (ALE), "CartPole-v1" (Gymnasium), "<maze, minatar … or probe>:<name>"
    action_repeat: int  # ALE, VizDoom, PettingZoo's Atari: frames per step; mazes: moves; Malmo: pictures
    proba_sticky_actions: float  # ALE, PettingZoo's Atari: chance per frame that the last action is repeated
    disable_saber_mode: bool  # False: SABER's 100 h cap and stuck stop; True: a 30 min cap alone
    max_stuck_time: float  # ALE only: seconds at 60 Hz without reward after which an episode is stopped
    stuck_is_terminal: bool  # True: that stop is a termination; False: a truncation
    max_episode_steps: int = 0  # not mazes, ViZDoom, Malmo: agent steps until it is truncated; 0: as they do
    minimal_actions: bool = False  # ALE only: the actions that the game reads, not all 18
    noop_max: int = 0  # ALE only: 0 to noop_max - 1 emulator frames without an action begin a game
    terminal_on_life_loss: bool = False  # ALE only: the loss of a life ends an episode, and the game goes on
    env_args: str = ""  # Gymnasium and own: arguments of the constructor, a JSON object
    resize: int = 0  # Gymnasium and own: height and width that images are brought to, pixels; 0: as they come
    grey: bool = False  # Gymnasium and own: colour images become grey
    info_masks: bool = False  # Gymnasium and own: the action_mask of infos is obeyed
    serial: bool = False  # ALE only: played in this process, so that it can be saved
    frame_width: int = 160  # mazes, ViZDoom and Malmo: width of the images, pixels
    frame_height: int = 120  # of the same, pixels
    malmo_ports: str = "9000"  # Malmo: clients, ports or host:port, "11100,11200"
    overclock_rate: float = 4.0  # Malmo: how much faster than real time
    onscreen_rendering: bool = False  # Malmo
    episode_time_sec: float = 30.0  # Malmo: seconds of Minecraft's own time
    no_reward_default: float = 0.0  # Malmo: reward of a step for which Minecraft sends none

    def of_whole_games(self) -> Self:
        """These settings for an evaluation: no life ends an episode there."""
        return replace(self, terminal_on_life_loss=False)


@dataclass(frozen=True)
class EnvDescription:
    """The shapes and actions that an agent and its replay need before the first step."""

    frame_shape: tuple[int, ...]  # one frame, never stacked: (84, 84), (4,), …
    frame_dtype: str  # "uint8" | "float32"
    num_actions: int | None  # number of discrete actions; None for continuous ones
    action_low: tuple[float, ...] | None  # bounds of continuous actions; None for discrete ones
    action_high: tuple[float, ...] | None
    frames_per_step: int  # --action-repeat where there is one; 1 for Gymnasium and probes
    frames_per_second: float | None  # None where minutes have no meaning
    history_length: int  # usual number of stacked frames: 4 for images, 1 for vectors
    mirrored_action: tuple[float, ...] | None = None
    """Sign of each component of a continuous action in a mirror image of the frame (left and right swapped);
    None where a mirror image is no equally likely view of the same problem.
    """
    masked: bool = False
    """Whether frames end with which actions are legal (envs/legal.py)."""
    by_turns: bool = False
    """Whether two players move by turns, each seeing the game from their own side."""
    parts: tuple[tuple[int, ...], ...] = ()
    """Shapes of the pictures and numbers that a vector is put together from; () where no picture is in it."""
    seats: int = 1
    """Environments that one game is: its seats, where they move at the same time."""

    def steps_in(self, minutes: int) -> int | None:
        """Agent steps in so many minutes of play; None where the environment has no clock."""
        per_second = self.frames_per_second
        return None if per_second is None else round(minutes * 60 * per_second / self.frames_per_step)


def description_from_spaces(frames: Box, actions: Discrete | Box) -> EnvDescription:
    """Describes an environment without emulator frames by the spaces of one frame and one action."""
    return EnvDescription(
        frame_shape=frames.shape,
        frame_dtype=str(frames.dtype),
        num_actions=None if isinstance(actions, Box) else int(actions.n),
        action_low=tuple(actions.low.tolist()) if isinstance(actions, Box) else None,
        action_high=tuple(actions.high.tolist()) if isinstance(actions, Box) else None,
        frames_per_step=1,
        frames_per_second=None,
        history_length=4 if len(frames.shape) >= 2 else 1,
    )


def invalid_actions(actions: npt.NDArray[Any], space: Discrete | Box, count: int) -> EnvError:
    """The error for actions that are not `count` actions of this space."""
    if isinstance(space, Discrete):
        wanted = f"integers from 0 to {space.n - 1}"
    else:
        wanted = f"numbers between {space.low.tolist()} and {space.high.tolist()}"
    shape = count, *(space.shape or ())
    return EnvError(f"Actions must be {wanted} in an array of the shape {shape}, not {actions.tolist()}.")


def failure_of(game: str, error: BaseException) -> BaseException:
    """The exception to raise for an error in an environment's own code: it names the environment."""
    if isinstance(error, EnvError | EnvFailure | UserError | ChildProcessError | MemoryError):
        return error
    if isinstance(error, KeyboardInterrupt) and _is_ctrl_c(error):
        return error
    return EnvFailure(f"The environment {game} failed: {error_text(error)}.")


def close_each(things: Iterable[Any], game: str) -> None:
    """Close games or environments. What a user's code raises then loses nothing that was played: it warns."""
    failures = [said for thing in things if (said := failure_of_close(thing))]
    if failures:
        log.warning("The environment %s could not be closed: %s.", game, failures[0])


def failure_of_close(thing: Any) -> str:
    """Closes it; returns what it raised, or ""."""
    try:
        thing.close()
    except (Exception, SystemExit) as error:  # of code that is not ours
        return error_text(error)
    return ""


def _is_ctrl_c(error: KeyboardInterrupt) -> bool:
    """From Python's own handler, or from ours, which raises a class of its own (supervision/process.py)."""
    is_plain = type(error) is KeyboardInterrupt
    return not is_plain or signal.getsignal(signal.SIGINT) is signal.default_int_handler


def check_first_frames(
    game: str, frames: npt.NDArray[Any], infos: dict[str, Any]
) -> tuple[npt.NDArray[Any], dict[str, Any]]:
    """The frames [N, *frame] and infos of a reset. EnvFailure where a frame is NaN or infinite."""
    if not (frames.dtype == np.uint8 or np.isfinite(frames).all()):
        raise unusable_values(game, frames, np.zeros(len(frames)), np.ones(len(frames), np.bool_))
    return frames, infos


def unusable_values(
    game: str, frames: npt.NDArray[Any], rewards: npt.NDArray[Any], is_kept: npt.NDArray[np.bool_]
) -> EnvFailure:
    """The error for a frame that is NaN or infinite, or a reward that the learner cannot keep."""
    if is_kept.all():
        what, is_valid, values = "frame", np.isfinite(frames), frames
    else:
        what, is_valid, values = "reward", is_kept, rewards
    row = int(np.flatnonzero(~is_valid.reshape(len(values), -1).all(axis=1))[0])
    found = values[row][~is_valid[row]].ravel()[0]
    why = ", too large to learn from" if np.isfinite(found) else ""
    return EnvFailure(
        f"The environment {game} is at fault: it returned a {what} with {found} (row {row}){why}."
    )


def optional_package(name: str, game: str, extra: str = "") -> Any:
    """Imports an optional package. `extra`: the extra that installs it, where its name is another.

    Raises:
        EnvError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise _missing(name, game, extra) from error


def check_package(name: str, game: str, extra: str = "") -> None:
    """As `optional_package`, but nothing is imported. Raises EnvError."""
    if find_spec(name) is None:
        raise _missing(name, game, extra)


def _missing(name: str, game: str, extra: str) -> EnvError:
    return EnvError(
        f"{game} needs the package {name}: `EXTRAS={extra or name} bash scripts/setup.sh` gets it."
    )
