"""A process that plays some of the games of envs.atari.processes; it ends when its parent does.

    python -m envs.atari.worker <settings as JSON> <file descriptor> <first row> <end row>

A command is a line on standard input, what it works on lies on the board (shared memory), and one line on
standard output says that it is done: empty, or the error. The end of standard input is the end of the parent.
"""

import json
import mmap
import sys
from collections.abc import Callable

import cv2

from envs.atari.board import Row, board_of
from envs.atari.game import AleGame, Grey
from envs.atari.games import room_byte
from envs.config import EnvConfig


class Seat:
    """One game and its row of the board."""

    def __init__(self, config: EnvConfig, row: Row, game: AleGame | None = None) -> None:
        """`game`: one that is made already."""
        self._game, self._row = game or AleGame(config), row
        self._room_byte = room_byte(config.game)

    def reset(self) -> None:
        """Starts an episode if the board asks for it."""
        if self._row["restart"]:
            seed = int(self._row["seed"])
            self._restart(None if seed < 0 else seed)

    def step(self) -> None:
        """Takes the board's action, or begins the next episode where the last step ended one."""
        if self._row["terminated"] or self._row["truncated"]:
            self._restart(None)
        else:
            frame, step = self._game.step(int(self._row["action"]))
            self._show(frame, *step)

    def _restart(self, seed: int | None) -> None:
        self._show(self._game.reset(seed), 0, False, False)

    def _show(self, frame: Grey, reward: int, terminated: bool, truncated: bool) -> None:
        row, ale = self._row, self._game.ale
        row["frame"], row["reward"] = frame, reward
        row["terminated"], row["truncated"] = terminated, truncated
        row["lives"], row["frame_number"] = ale.lives(), ale.getFrameNumber()
        row["episode_frame_number"] = ale.getEpisodeFrameNumber()
        if self._room_byte is not None:
            row["room"] = ale.getRAM()[self._room_byte]


def main(settings: str, descriptor: str, first: str, end: str) -> None:
    """Obeys until standard input ends."""
    cv2.setNumThreads(0)
    config = EnvConfig(**json.loads(settings))
    rows = board_of(mmap.mmap(int(descriptor), 0))[int(first) : int(end)]
    seats = [Seat(config, rows[row]) for row in range(len(rows))]
    commands: dict[str, Callable[[Seat], None]] = {"reset": Seat.reset, "step": Seat.step}
    for line in sys.stdin:
        for seat in seats:
            commands[line.strip()](seat)
        print(flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:
        print(" ".join(str(error).split()) or type(error).__name__, flush=True)
        sys.exit(1)
