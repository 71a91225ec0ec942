"""What one seat of a game sees and does, and the frames that this becomes.

A picture stays one, a board of zeros and ones becomes one, all else becomes numbers. Frames end with the
rules, as envs/legal.py has them, where actions may be forbidden; those of moves at the same time also say
which seat it is.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, flatten, flatten_space

from envs.config import EnvConfig, EnvError
from envs.gym.parts import SHARE
from envs.gym.pictures import are_channels_first, channels_moved, is_bytes, is_picture
from envs.playback import Frames

LEAST_SIDE = 4
"""Least height and width, in cells, of a board that is seen as an image; smaller boards are a few numbers."""


class Seat(NamedTuple):
    """What every seat of a game observes and does; they are alike."""

    shown: Space[Any]
    observed: Box
    """The same as an array."""
    num_actions: int
    masked: bool
    """Whether observations say which actions are legal."""

    def array(self, observation: Any) -> npt.NDArray[Any]:
        """What it shows, without the rules, as `observed` has it."""
        seen = observation["observation"] if self.masked else observation
        return np.asarray(seen if isinstance(self.shown, Box) else flatten(self.shown, seen))

    @property
    def has_large_bytes(self) -> bool:
        """Whether it shows bytes above 1."""
        return is_bytes(self.observed) and bool((self.observed.high > 1).any())


def seat_of(game: Any, name: str) -> Seat:
    """What its seats observe and do. Raises EnvError where two of them differ, or agents cannot play it."""
    first, *others = game.possible_agents
    observed, actions = game.observation_space(first), game.action_space(first)
    if any(game.observation_space(seat) != observed or game.action_space(seat) != actions for seat in others):
        raise EnvError(f"The seats of {name} see or do different things, so that no network can play all.")
    if not isinstance(actions, Discrete) or actions.start != 0:
        raise EnvError(f"The seats of {name} need discrete actions, counted from 0, not {actions}.")
    masked = isinstance(observed, Dict) and "action_mask" in observed.spaces
    shown: Space[Any] = observed["observation"] if isinstance(observed, Dict) and masked else observed
    box = flatten_space(shown) if isinstance(shown, Discrete | MultiDiscrete | MultiBinary) else shown
    if not isinstance(box, Box):
        raise EnvError(f"What the seats of {name} observe must be an array, not {box}.")
    return Seat(shown, box, int(actions.n), masked)


def is_board(seat: Seat) -> bool:
    """Whether it observes planes of zeros and ones, [h, w, planes], on at least 4 x 4 cells."""
    shape, box = seat.observed.shape, seat.observed
    has_cells = len(shape) == 3 and min(shape[:2]) >= LEAST_SIDE and shape[0] * shape[1] >= seat.num_actions
    return has_cells and bool((box.low == 0).all() and (box.high == 1).all())


def turn_space(seat: Seat, config: EnvConfig) -> Box:
    """Frames of a game by turns: images of boards and pictures, numbers of all others, and the rules.

    Raises EnvError where an image has no place for these.
    """
    if not _is_image(seat):
        return _space_of_numbers(seat, seat.num_actions)
    height, width, planes = _image(seat, seat.observed.low, config).shape
    _check_place(seat, height * width, config)
    return Box(0, 255, (height, width, planes + 1), np.uint8)


def turn_frame(seat: Seat, observation: Any, info: Mapping[str, Any], config: EnvConfig) -> Frames:
    """One frame of `turn_space`; everything is legal where neither `observation` nor `info` says."""
    said, seen = observation if seat.masked else info, seat.array(observation)
    legal = np.asarray(said.get("action_mask", np.ones(seat.num_actions)))
    if not _is_image(seat):
        return np.concatenate([_numbers(seen, seat), legal]).astype(np.float32)
    image = _image(seat, seen, config)
    return np.dstack([image, _rules_plane(legal, image)])


def _is_image(seat: Seat) -> bool:
    """Whether a seat of a game by turns sees images."""
    return is_board(seat) or (is_picture(seat.observed) and seat.has_large_bytes)


def _image(seat: Seat, seen: npt.NDArray[Any], config: EnvConfig) -> npt.NDArray[np.uint8]:
    """Zeros and ones as 0 and 255: networks divide bytes by 255."""
    if is_board(seat):
        return seen.astype(np.uint8) * np.uint8(255)
    return _picture(seen if seat.has_large_bytes else seen * np.uint8(255), config)


def _rules_plane(legal: npt.NDArray[Any], image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    plane = np.zeros(image.shape[:2], np.uint8)
    plane.flat[: len(legal)] = np.uint8(255) * legal.astype(np.bool_)
    return plane


def _check_place(seat: Seat, pixels: int, config: EnvConfig) -> None:
    if pixels < seat.num_actions:
        raise EnvError(f"Images of {config.game} have fewer pixels than actions: give a larger --resize.")


def _space_of_numbers(seat: Seat, others: int) -> Box:
    """`others`: zeros and ones behind them."""
    low = np.concatenate([_numbers(seat.observed.low, seat), np.zeros(others)])
    high = np.concatenate([_numbers(seat.observed.high, seat), np.ones(others)])
    return Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)


def seat_space(seat: Seat, seats: int, config: EnvConfig) -> Box:
    """Frames of one seat: an image with a plane that says which seat it is, or numbers and then a 1 there.

    Both end with the rules, as envs/legal.py has them, where actions may be forbidden. Raises EnvError where
    an image has no place for these.
    """
    if not is_picture(seat.observed):
        return _space_of_numbers(seat, seats + (seat.num_actions if seat.masked else 0))
    height, width, colours = _image(seat, seat.observed.low, config).shape
    if seat.masked:
        _check_place(seat, height * width, config)
    return Box(0, 255, (height, width, colours + (2 if seat.masked else 1)), np.uint8)


def seat_frame(observation: Any, place: int, seats: int, seat: Seat, config: EnvConfig) -> Frames:
    """One frame of `seat_space`, of seat number `place`."""
    seen = seat.array(observation)
    rules = np.asarray(observation["action_mask"], np.bool_) if seat.masked else np.zeros(0, np.bool_)
    if not is_picture(seat.observed):
        return np.concatenate([_numbers(seen, seat), np.arange(seats) == place, rules]).astype(np.float32)
    picture = _image(seat, seen, config)
    own = np.full(picture.shape[:2], round(255 * place / max(seats - 1, 1)), np.uint8)
    return np.dstack([picture, own, *([_rules_plane(rules, picture)] if seat.masked else ())])


def _numbers(seen: npt.NDArray[Any], seat: Seat) -> npt.NDArray[Any]:
    """Bytes above 1 as shares of 255: they stand beside zeros and ones."""
    return seen.ravel() / SHARE if seat.has_large_bytes else seen.ravel()


def _picture(seen: npt.NDArray[Any], config: EnvConfig) -> npt.NDArray[np.uint8]:
    """[h, w, c], in grey and of the size that the flags say."""
    if are_channels_first(seen.shape):
        seen = channels_moved(seen)
    if config.grey and seen.shape[2:] == (3,):
        seen = cv2.cvtColor(np.ascontiguousarray(seen), cv2.COLOR_RGB2GRAY)
    if config.resize:
        seen = cv2.resize(seen, (config.resize, config.resize), interpolation=cv2.INTER_AREA)
    return seen.reshape(*seen.shape[:2], -1)
