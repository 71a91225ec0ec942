"""Frames of Montezuma's Revenge from rooms that a beginner never sees, found by searching among states.

    python scripts/gather_montezuma_rooms.py --seed 1 --steps 1500000

A small Go-Explore (Ecoffet et al. 2021, arXiv 2004.12919): an archive keeps one emulator state for each cell
(room, position, belongings); over and over a rarely chosen one is restored and played on at random. A state
enters the archive only if the game goes on for a while without losing a life. No frame comes from training:
whether a predictor's error is higher on rooms that an agent did not visit can be tested on them.

Writes results/kept/montezuma_rooms.npz: `frames` uint8 [M, 84, 84] as envs.atari shows them, `rooms` int64
[M], and `about`, a JSON text that says how they were made. The same seed and steps give the same frames.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from envs.atari.game import AleGame  # noqa: E402
from envs.atari.games import NUM_ACTIONS, room_byte  # noqa: E402
from envs.config import EnvConfig  # noqa: E402
from reporting.atomic import write_atomically  # noqa: E402

GAME = "montezuma_revenge"
CONFIG = EnvConfig(GAME, 4, 0.0, disable_saber_mode=True, max_stuck_time=300.0, stuck_is_terminal=False)
"""Without sticky actions: a state that was reached once is restored, not played again."""
X, Y, BELONGINGS = 42, 43, 65
"""Bytes of the console's memory (Ecoffet et al. 2021; Anand et al. 2019, arXiv 1906.08226)."""
CELL_WIDTH = 8
PLAYED_ON = 100
"""Steps from each restored state."""
PROBA_SAME = 0.95
"""Chance that the last action is taken again, as in Go-Explore: otherwise nobody gets across a room."""
SURVIVED = 30
"""Steps without losing a life after which a state is worth returning to: longer than a fall."""


class Cell(NamedTuple):
    """What makes two states alike."""

    room: int
    x: int
    y: int
    belongings: int


class Moment(NamedTuple):
    """One step of the search."""

    cell: Cell
    frame: NDArray[np.uint8]  # [84, 84]
    state: Any  # ale_py's ALEState; None where the cell was known


@dataclass
class Entry:
    """A state to return to."""

    state: Any
    chosen: int = 0


class Explorer:
    """Restores states of one game and plays on from them."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._game = AleGame(CONFIG)
        self._room_byte = room_byte(GAME)
        self._game.reset(seed)
        self.archive = {self._cell(): Entry(self._game.ale.cloneState())}

    def excursion(self) -> list[Moment]:
        """Up to PLAYED_ON steps from some cell, less those after which a life was soon lost."""
        self._return_to_a_cell()
        moments = list(self._play())
        for moment in moments[:-SURVIVED]:
            if moment.state is not None:
                self.archive.setdefault(moment.cell, Entry(moment.state))
        return moments

    def _return_to_a_cell(self) -> None:
        entries = list(self.archive.values())
        weights = np.array([entry.chosen + 1 for entry in entries]) ** -0.5
        entry = entries[self._random.choice(len(entries), p=weights / weights.sum())]
        entry.chosen += 1
        self._game.ale.restoreState(entry.state)

    def _play(self) -> Iterator[Moment]:
        ale, lives, action = self._game.ale, self._game.ale.lives(), int(self._random.integers(NUM_ACTIONS))
        for _ in range(PLAYED_ON):
            if self._random.random() > PROBA_SAME:
                action = int(self._random.integers(NUM_ACTIONS))
            frame, _, terminated, truncated = self._game.step(action)
            if terminated or truncated or ale.lives() < lives:
                return
            cell = self._cell()
            yield Moment(cell, frame, None if cell in self.archive else ale.cloneState())

    def _cell(self) -> Cell:
        ram = self._game.ale.getRAM()
        x, y = int(ram[X]) // CELL_WIDTH, int(ram[Y]) // CELL_WIDTH
        return Cell(int(ram[self._room_byte]), x, y, int(ram[BELONGINGS]))


class Sample:
    """A uniform sample of all frames met in each room, no two alike (reservoir sampling)."""

    def __init__(self, per_room: int, seed: int) -> None:
        self._per_room, self._random = per_room, np.random.default_rng(seed)
        self._met: dict[int, set[bytes]] = {}
        self.frames: dict[int, list[NDArray[np.uint8]]] = {}

    def add(self, moments: list[Moment]) -> None:
        """Frames on the way from one room into another may show both, and are left out."""
        for before, moment in zip(moments, moments[1:], strict=False):
            if before.cell.room == moment.cell.room:
                self._add(moment.cell.room, moment.frame)

    def _add(self, room: int, frame: NDArray[np.uint8]) -> None:
        met, kept = self._met.setdefault(room, set()), self.frames.setdefault(room, [])
        digest = blake2b(frame.tobytes(), digest_size=8).digest()
        if digest in met:
            return
        met.add(digest)
        if len(kept) < self._per_room:
            kept.append(frame)
        elif (place := int(self._random.integers(len(met)))) < self._per_room:
            kept[place] = frame


def search(seed: int, steps: int, per_room: int) -> Sample:
    """Frames of all rooms that `steps` agent steps reach."""
    explorer, sample = Explorer(seed), Sample(per_room, seed)
    done, told = 0, 0
    while done < steps:
        moments = explorer.excursion()
        sample.add(moments)
        done += len(moments) + 1
        if done >= told:
            found = {room: len(frames) for room, frames in sorted(sample.frames.items())}
            print(f"{done:,} steps, {len(explorer.archive):,} cells, frames by room: {found}", flush=True)
            told += 50_000
    return sample


def write(path: Path, sample: Sample, about: dict[str, object]) -> None:
    """Keeps the frames, sorted by room."""
    rooms = [(room, frame) for room, frames in sorted(sample.frames.items()) for frame in frames]
    target = io.BytesIO()
    np.savez_compressed(
        target,
        frames=np.stack([frame for _, frame in rooms]),
        rooms=np.array([room for room, _ in rooms], np.int64),
        about=np.array(json.dumps(about, sort_keys=True)),
    )
    write_atomically(path, target.getvalue())


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Gathers frames of Montezuma's Revenge from many rooms.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1_500_000, help="agent steps of search")
    parser.add_argument("--per-room", type=int, default=128, help="frames kept of each room, at most")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "kept" / "montezuma_rooms.npz")
    given = parser.parse_args()
    sample = search(given.seed, given.steps, given.per_room)
    about = {
        "script": "scripts/gather_montezuma_rooms.py", "game": GAME, "seed": given.seed, "steps": given.steps,
        "per_room": given.per_room, "action_repeat": CONFIG.action_repeat, "sticky": 0.0,
        "ale_py": version("ale-py"),
    }  # fmt: skip
    write(given.out, sample, about)
    print(f"Saved {given.out}: {given.out.stat().st_size:,} bytes.")


if __name__ == "__main__":
    main()
