"""ALE games in processes of their own, for games whose memory is to be read.

AtariVectorEnv shows no memory, and ALEInterface, which does, holds Python's lock while it emulates: threads
do not help, processes do. Each plays some of the environments (envs/atari/worker.py). Actions, frames and all
else lie on a board in anonymous shared memory, which is gone with the last process that maps it; pipes only
say "step" and "done". A process whose parent has died, in whatever way, reads the end of its input and ends.

Measured with Montezuma's Revenge (ale-py 0.12.1, EnvPool 1.2.5, two cores that others used too), steps per
second of processor time:

    environments        1        8       32      128
    AtariVectorEnv  2,393    2,565    2,643    2,679
    processes       2,144    2,368    2,490    2,540
    EnvPool         2,110    2,361    2,450    2,509

EnvPool shows the memory too, but is no faster, takes 0.9 GB, and begins each episode with a no-op or FIRE.
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

import numpy as np
import numpy.typing as npt

from envs.atari.board import INFOS, ROW, board_of
from envs.config import EnvConfig, EnvError
from envs.contract import Frames, Infos

_ROOT = Path(__file__).parents[2]


class AleProcesses:
    """Stands in for ale_py.AtariVectorEnv, with infos["room"] int64 [N] beside its own.

    From the same seeds and actions all it returns is the same bit for bit.

    Args:
        config: a game that has rooms, and its protocol.
        count: number of environments, N.
        processes: how many share them; by default one per core.
    """

    def __init__(self, config: EnvConfig, count: int, processes: int | None = None) -> None:
        descriptor = os.memfd_create("ale")
        os.ftruncate(descriptor, count * ROW.itemsize)
        self._board = board_of(mmap.mmap(descriptor, 0))
        parts = min(processes or len(os.sched_getaffinity(0)), count)
        bounds = np.linspace(0, count, parts + 1).astype(int).tolist()
        spans = zip(bounds, bounds[1:], strict=False)
        self._workers = [_Worker(config, descriptor, first, end) for first, end in spans]
        os.close(descriptor)
        self._end = weakref.finalize(self, _end_all, self._workers)

    def reset(self, *, seed: npt.NDArray[np.int64] | None, options: dict[str, Any]) -> tuple[Frames, Infos]:
        """Restarts what options["reset_mask"] marks, with one seed for each or as their generators are."""
        mask = options["reset_mask"]
        self._board["restart"] = mask
        self._board["seed"][mask] = -1 if seed is None else seed
        self._all_do("reset")
        return self._frames(), self._infos()

    def step(
        self, actions: npt.NDArray[np.int64]
    ) -> tuple[Frames, npt.NDArray[np.int32], npt.NDArray[np.bool_], npt.NDArray[np.bool_], Infos]:
        """Takes one action [N] in every environment that is not about to restart."""
        self._board["action"] = actions
        self._all_do("step")
        rewards, terminated, truncated = (
            self._board[field].copy() for field in ("reward", "terminated", "truncated")
        )
        return self._frames(), rewards, terminated, truncated, self._infos()

    def close(self) -> None:
        """Ends the processes, as do the end of this object and that of Python."""
        self._end()

    def _all_do(self, command: str) -> None:
        for worker in self._workers:
            worker.begin(command)
        for worker in self._workers:
            worker.finish()

    def _frames(self) -> Frames:
        """[N, 1, 84, 84], as a stack of one."""
        return self._board["frame"][:, None].copy()

    def _infos(self) -> Infos:
        return {field: self._board[field].copy() for field in INFOS}


class _Worker:
    """The parent's end of one process.

    Raises:
        EnvError: what the process complained of.
        ChildProcessError: it is gone without a word.
    """

    def __init__(self, config: EnvConfig, descriptor: int, first: int, end: int) -> None:
        self._game = config.game
        arguments = (json.dumps(asdict(config)), *map(str, (descriptor, first, end)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "envs.atari.worker", *arguments],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[descriptor],
            process_group=0,  # Ctrl-C is for the parent, which needs them for an orderly end
        )

    def begin(self, command: str) -> None:
        assert self._process.stdin is not None
        try:
            print(command, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            self.finish()

    def finish(self) -> None:
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


def _end_all(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.close()
