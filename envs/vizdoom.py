"""The family of VizDoom's scenarios: Doom as a maze, played by turning and walking.

VizDoom (Kempka et al. 2016, arXiv:1605.02097) gives a turn in degrees per tic and holds it for all tics of a
step, so that a step's angle is divided by them. It shows nothing of the tic that ends an episode: the last
frame is the one before. A time-out is a truncation; any other end is a termination.
"""

import shlex
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np

from envs.config import EnvConfig, EnvDescription, EnvError, check_package, optional_package
from envs.contract import SeededVectorEnv
from envs.playback import Action, Screen
from envs.registry import Family
from envs.seeding import draw_seed
from envs.solo import STEERING, SoloStep, SoloVector, Steering, describe, frame_space

if TYPE_CHECKING:
    from vizdoom import DoomGame

__all__ = ["FAMILY"]

PREFIX = "vizdoom:"
SCENARIOS = ("my_way_home", "health_gathering", "health_gathering_supreme")
"""Names of the scenarios of VizDoom 1.3.2 that can be played; the others need weapons or steps to the side.
"""
DEGREES_PER_STEP = 15.0  # to the right, of the action 1; four tics of Doom's own keys turn 14
SPEED = 25.0  # Doom's walking, of the action 1; it cuts off at 50, its running
_TICS_PER_SECOND = 35.0  # Doom's
_NAMES = [PREFIX + scenario for scenario in SCENARIOS]


class VizDoomGame:
    """One scenario in its own process.

    Raises:
        EnvError: the package is missing, VizDoom cannot start, or the frames are larger than it draws.
    """

    def __init__(self, config: EnvConfig) -> None:
        self._size = config.frame_width, config.frame_height
        self._tics = config.action_repeat
        self._doom = _started(config)

    def begin(self, seed: int) -> Screen:
        """Starts the episode that belongs to `seed` and returns its first frame [h, w, 3]."""
        self._doom.set_seed(seed)
        self._doom.new_episode()
        self._frame = self._screen()
        return self._frame

    def step(self, action: Steering) -> SoloStep:
        """Turns and walks (both within [-1, 1]) for a step of `action_repeat` tics."""
        return self.hold(action, self._tics)

    def hold(self, action: Steering, tics: int) -> SoloStep:
        """Does that for some of the step's tics only."""
        turn, walk = action.tolist()
        reward = self._doom.make_action([turn * DEGREES_PER_STEP / self._tics, walk * SPEED], tics)
        ended, late = self._doom.is_episode_finished(), self._doom.is_episode_timeout_reached()
        if not ended:
            self._frame = self._screen()
        return SoloStep(self._frame, reward, terminated=ended and not late, truncated=ended and late)

    def close(self) -> None:
        """Ends the process."""
        self._doom.close()

    def _screen(self) -> Screen:
        screen = self._doom.get_state().screen_buffer
        if screen.shape[1::-1] == self._size:
            return np.array(screen)
        return np.asarray(cv2.resize(screen, self._size, interpolation=cv2.INTER_AREA), np.uint8)


class VizDoomPlayback:
    """Plays the game tic by tic; the same seed and actions give the same frames (tested)."""

    def __init__(self, config: EnvConfig, seed: int) -> None:
        self._seed, self._tics = seed, config.action_repeat
        self._game = VizDoomGame(config)

    def first(self) -> Screen:
        """Starts the episode and returns its first frame [h, w, 3]."""
        self._frame = self._game.begin(draw_seed(np.random.default_rng(self._seed)))
        return self._frame

    def step(self, action: Action) -> tuple[Screen, list[Screen]]:
        """Returns the frame [h, w, 3] after `action`, and the pictures of this step's tics.

        The step that ends an episode may show tics that are newer than its frame.
        """
        pictures: list[Screen] = []
        for _ in range(self._tics):
            tic = self._game.hold(np.asarray(action), 1)
            if tic.terminated or tic.truncated:
                return self._frame, pictures
            pictures.append(tic.frame)
        self._frame = tic.frame
        return self._frame, pictures

    def close(self) -> None:
        """Ends the game's process."""
        self._game.close()


def _started(config: EnvConfig) -> "DoomGame":
    vizdoom = optional_package("vizdoom", config.game)
    resolutions = vizdoom.ScreenResolution.__members__
    resolution = smallest_resolution(resolutions, config.frame_width, config.frame_height)
    if resolution is None:
        raise EnvError(f"VizDoom draws no frames of {config.frame_width} x {config.frame_height} pixels.")
    doom: DoomGame = vizdoom.DoomGame()
    try:
        doom.load_config(str(Path(vizdoom.scenarios_path, config.game.removeprefix(PREFIX) + ".cfg")))
        doom.set_available_buttons(
            [vizdoom.Button.TURN_LEFT_RIGHT_DELTA, vizdoom.Button.MOVE_FORWARD_BACKWARD_DELTA]
        )
        doom.set_screen_format(vizdoom.ScreenFormat.RGB24)
        doom.set_screen_resolution(resolutions[resolution])
        doom.set_window_visible(False)
        doom.set_mode(vizdoom.Mode.PLAYER)
        doom.set_doom_config_path("/dev/null")  # where it would keep settings for the next time
        doom.set_vizdoom_path(_starter(str(Path(vizdoom.scenarios_path).with_name("vizdoom"))))
        doom.init()
    except (vizdoom.ViZDoomErrorException, vizdoom.FileDoesNotExistException) as error:
        raise EnvError(f"VizDoom could not start {config.game}: {error}") from error
    return doom


def smallest_resolution(names: Iterable[str], width: int, height: int) -> str | None:
    """Returns the smallest of VizDoom's resolutions that holds width x height pixels; None if none does.

    >>> smallest_resolution(["RES_320X240", "RES_160X120"], 84, 84)
    'RES_160X120'
    """
    sizes = {name: tuple(map(int, name.removeprefix("RES_").split("X"))) for name in names}
    large_enough = [name for name, (w, h) in sizes.items() if w >= width and h >= height]
    return min(large_enough, key=lambda name: sizes[name], default=None)


_START = """#!/bin/sh
trap '' INT TERM
cd {folder} || exit
exec setpriv --pdeathsig KILL {program} "$@"
"""
"""VizDoom (1.3.2) starts its game as a plain child: a terminal's Ctrl-C reaches it too, and a game that is
gone breaks an actor that was about to stop in order; it makes a folder _vizdoom wherever it was started; and
it lives on for ever when the program that plays is killed. So this script starts it: it ignores those
signals, stands in a temporary folder, and dies with its parent (Linux; setpriv is a part of util-linux).
"""


@cache
def _starter(program: str) -> str:
    """The path of the script that starts `program`."""
    folder = _temporary_folder().name
    script = Path(folder, "start")
    script.write_text(_START.format(folder=shlex.quote(folder), program=shlex.quote(program)))
    script.chmod(0o700)
    return str(script)


@cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="vizdoom-", ignore_cleanup_errors=True)


def _describe(config: EnvConfig) -> EnvDescription:
    return replace(describe(config), frames_per_second=_TICS_PER_SECOND)


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    games = [VizDoomGame(config) for _ in seeds]
    return SoloVector(frame_space(config), STEERING, games, seeds)


FAMILY = Family(
    lambda game: game if game in _NAMES else None,
    lambda: _NAMES,
    _describe,
    _make,
    VizDoomPlayback,
    needs=partial(check_package, "vizdoom"),
)
