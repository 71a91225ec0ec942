"""Whether a snapshot sees wins and threats at connect four: `python -m scripts.connect_four_tactics MODEL`.

Positions come from random play. In the first kind exactly one move wins at once; in the second none does, and
the other player threatens to win at once in exactly one place, which must be taken.
"""

from __future__ import annotations

if __name__ == "__main__":
    from supervision.process import name_missing_packages

    name_missing_packages()

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from args import read_args
from evaluation.policies import AgentPolicy
from supervision.process import set_up_logging
from wiring.endings import exit_on_errors
from wiring.setting import restore_agent

ROWS, COLUMNS, LINE = 6, 7, 4
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))
Board = NDArray[np.int8]  # [6, 7] from the top: 1 own, -1 the other player's, 0 empty


def main(argv: list[str]) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--positions", type=int, default=200, help="of each kind")
    parser.add_argument("--seed", type=int, default=123)
    words = parser.parse_args(argv)
    set_up_logging()
    with exit_on_errors():
        agent, setting, _ = restore_agent(words.model, read_args([]))
    policy = AgentPolicy(agent, setting.args.history_length, noisy=False)
    generator = np.random.default_rng(words.seed)
    for kind, moves_of in (("the only winning move", wins), ("the only block", blocks)):
        found = [next(positions(generator, moves_of)) for _ in range(words.positions)]
        policy.begin(len(found))
        chosen = policy.act(np.stack([frame(board) for board, _ in found])[:, None])
        right = sum(int(move) == only for move, (_, only) in zip(chosen, found, strict=True))
        print(f"{kind}: {right} of {len(found)}")


def positions(generator: np.random.Generator, moves_of: Any) -> Iterator[tuple[Board, int]]:
    """Boards of random play, seen by who is to move, in which `moves_of` names one move; and that move."""
    while True:
        board = np.zeros((ROWS, COLUMNS), np.int8)
        while len(free := np.flatnonzero(board[0] == 0)):
            moves = moves_of(board)
            if len(moves) == 1:
                yield board, moves[0]
                break
            after = dropped(board, int(generator.choice(free)))
            if has_line(after):
                break
            board = -after


def wins(board: Board) -> list[int]:
    """Moves that win at once."""
    return [move for move in np.flatnonzero(board[0] == 0).tolist() if has_line(dropped(board, move))]


def blocks(board: Board) -> list[int]:
    """Moves that keep the other player from winning at once; none where a move wins."""
    return [] if wins(board) else wins(-board)


def dropped(board: Board, column: int) -> Board:
    """The board after an own piece fell into a column that has room."""
    after = board.copy()
    after[np.flatnonzero(board[:, column] == 0)[-1], column] = 1
    return after


def has_line(board: Board) -> bool:
    """Whether four own pieces stand in a row."""
    own = np.pad(board == 1, LINE - 1)
    for down, right in DIRECTIONS:
        shifted = [np.roll(own, (-down * step, -right * step), (0, 1)) for step in range(LINE)]
        if np.logical_and.reduce(shifted).any():
            return True
    return False


def frame(board: Board) -> NDArray[np.uint8]:
    """As the game shows it to who is to move (envs/legal.py): own pieces, the other's, the legal moves."""
    rules = np.zeros_like(board)
    rules[0] = board[0] == 0
    return np.dstack([board == 1, board == -1, rules]).astype(np.uint8) * np.uint8(255)


if __name__ == "__main__":
    main(sys.argv[1:])
