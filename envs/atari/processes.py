"""ALE games in processes of their own, for games whose memory is to be read.

AtariVectorEnv shows no memory, and ALEInterface, which does, holds Python's lock while it emulates: threads
do not help, processes do. Each plays some of the environments. Actions, frames and all else lie on a board in
anonymous shared memory, which is gone with the last process that maps it; pipes only carry the commands
"reset" and "step" and an empty line, or the error, when it is done. A process whose parent has died, in
whatever way, reads the end of its input and ends.

They are about as fast as AtariVectorEnv and EnvPool (docs/journal/performance.md).
"""

import json
import mmap
import os
import subprocess
import sys
import weakref
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from envs.atari.game import AleGame, GameSteps, Grey
from envs.atari.games import SCREEN, room_byte
from envs.config import EnvConfig, EnvError
from envs.contract import Infos
from envs.playback import Frames

Row = npt.NDArray[np.void]

ROW = np.dtype(
    [
        ("action", np.int64),
        ("restart", np.bool_),  # by a reset
        ("seed", np.int64),  # of that reset; below 0: none
        ("frame", np.uint8, SCREEN),
        ("reward", np.int32),
        ("terminated", np.bool_),
        ("truncated", np.bool_),
        ("room", np.int64),
        ("lives", np.int64),
    ],
    align=True,
)
"""One environment on the board. The parent writes the first three fields, a worker the others."""

_ROOT = Path(__file__).parents[2]
_WORKER = "import sys; from envs.atari.processes import work; sys.exit(work(*sys.argv[1:]))"


class AleProcesses:
    """Stands in for ale_py.AtariVectorEnv, with "room" and "lives", int64 [N], as its only infos.

    From the same seeds and actions all else that it returns is the same bit for bit.

    Args:
        count: Number of environments, N.
        processes: How many share them; by default one per core.
    """

    def __init__(self, config: EnvConfig, count: int, processes: int | None = None) -> None:
        descriptor = os.memfd_create("ale")
        os.ftruncate(descriptor, count * ROW.itemsize)
        self._board: Row = np.frombuffer(mmap.mmap(descriptor, 0), ROW)
        parts = min(processes or len(os.sched_getaffinity(0)), count)
        bounds = np.linspace(0, count, parts + 1).astype(int).tolist()
        spans = zip(bounds, bounds[1:], strict=False)
        self._workers = [_GameProcess(config, descriptor, first, end) for first, end in spans]
        os.close(descriptor)
        self._end = weakref.finalize(self, _end_all, self._workers)

    def reset(self, *, seed: npt.NDArray[np.int64] | None, options: dict[str, Any]) -> tuple[Frames, Infos]:
        """Restarts what options["reset_mask"] marks, with one seed for each or as their generators are."""
        mask = options["reset_mask"]
        self._board["restart"] = mask
        self._board["seed"][mask] = -1 if seed is None else seed
        self._command("reset")
        return self._frames(), self._infos()

    def step(self, actions: npt.NDArray[np.int64]) -> GameSteps:
        """Takes one action [N] in every environment that is not about to restart."""
        self._board["action"] = actions
        self._command("step")
        board = self._board
        rewards, terminated, truncated = (
            board[name].copy() for name in ("reward", "terminated", "truncated")
        )
        return self._frames(), rewards, terminated, truncated, self._infos()

    def close(self) -> None:
        """Ends the processes, as do the end of this object and that of Python."""
        self._end()

    def _command(self, command: str) -> None:
        for worker in self._workers:
            worker.send(command)
        for worker in self._workers:
            worker.wait()

    def _infos(self) -> Infos:
        return {name: self._board[name].copy() for name in ("room", "lives")}

    def _frames(self) -> Frames:
        """[N, 1, 84, 84], as a stack of one."""
        return self._board["frame"][:, None].copy()


class _GameProcess:
    """The parent's end of one process.

    Raises:
        EnvError: The error that the process sent.
        ChildProcessError: The process ended without one.
    """

    def __init__(self, config: EnvConfig, descriptor: int, first: int, end: int) -> None:
        self._game = config.game
        arguments = (json.dumps(asdict(config)), *map(str, (descriptor, first, end)))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, *arguments],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[descriptor],
            process_group=0,  # Ctrl-C is for the parent, which needs them for an orderly end
        )

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        try:
            print(command, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            self.wait()

    def wait(self) -> None:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if answer == "\n":
            return
        if answer:
            raise EnvError(answer.strip())
        raise ChildProcessError(f"A process that plays {self._game} ended with code {self._process.wait()}.")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _end_all(workers: Sequence[_GameProcess]) -> None:
    for worker in workers:
        worker.close()


def work(settings: str, descriptor: str, first: str, end: str) -> int:
    """A worker process: plays rows [first, end) of the board until standard input ends.

    Args:
        settings: An EnvConfig as JSON.
        descriptor: Of the board's shared memory.

    Returns:
        The exit code: 1 after an error, whose sentence is on standard output.
    """
    cv2.setNumThreads(0)
    try:
        config = EnvConfig(**json.loads(settings))
        board: Row = np.frombuffer(mmap.mmap(int(descriptor), 0), ROW)
        games = [_BoardGame(config, board[row]) for row in range(int(first), int(end))]
        for line in sys.stdin:
            for game in games:
                game.reset() if line == "reset\n" else game.step()
            print(flush=True)
    except Exception as error:
        print(" ".join(str(error).split()) or type(error).__name__, flush=True)
        return 1
    return 0


class _BoardGame:
    """One game and its row of the board."""

    def __init__(self, config: EnvConfig, row: Row) -> None:
        self._game, self._row, self._room_byte = AleGame(config), row, room_byte(config.game)

    def reset(self) -> None:
        if self._row["restart"]:
            seed = int(self._row["seed"])
            self._show(self._game.reset(None if seed < 0 else seed), 0, False, False)

    def step(self) -> None:
        """Takes the board's action, or begins the next episode where the last step ended one."""
        if self._row["terminated"] or self._row["truncated"]:
            self._show(self._game.reset(None), 0, False, False)
        else:
            self._show(*self._game.step(int(self._row["action"])))

    def _show(self, frame: Grey, reward: int, terminated: bool, truncated: bool) -> None:
        row = self._row
        row["frame"], row["reward"] = frame, reward
        row["terminated"], row["truncated"] = terminated, truncated
        row["lives"] = self._game.ale.lives()
        if self._room_byte is not None:
            row["room"] = self._game.ale.getRAM()[self._room_byte]
