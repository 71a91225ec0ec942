"""The family of games for several players, by PettingZoo's API: "pettingzoo:connect_four_v3" and others.

One network plays every seat (parameter sharing), unless --opponents or --seat-runs says otherwise:

* A game by turns of two players (turns.py) is one environment. Whoever is to move sees it from their own
  side, so that its steps are both players' by turns, and what one gains the other loses. A negative
  --discount says so: Q(s, a) = r - gamma max Q(s', .), which is negamax. n-step returns alternate alike. An
  agent so plays against itself, and learns from both sides of every game.
* In a game of moves at the same time (seats.py) every seat is an environment, and sees which seat it is.

Rules that forbid actions are obeyed in acting, in random play and in targets (envs/legal.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from envs.config import EnvConfig, EnvDescription, EnvError, description_from_spaces
from envs.multi.games import PREFIX, Build, build, is_atari, is_by_turns, known_names
from envs.multi.observed import seat_of, seat_space, turn_space
from envs.multi.seats import SeatsVector
from envs.multi.turns import TurnsVector
from envs.playback import Playback, VectorPlayback, drawn
from envs.registry import Family

__all__ = ["FAMILY", "described", "playback_of", "vector_of"]


def described(game: Any, config: EnvConfig) -> EnvDescription:
    """Describes a game that was built for it, and ends it. Raises EnvError."""
    seat, seats, by_turns = seat_of(game, config.game), len(game.possible_agents), is_by_turns(game)
    game.close()
    if not by_turns:
        space = seat_space(seat, seats, config)
        described = description_from_spaces(space, Discrete(seat.num_actions))
        repeat = config.action_repeat if is_atari(config) else 1
        return replace(described, frames_per_step=repeat, seats=seats, masked=seat.masked)
    described = description_from_spaces(turn_space(seat, config), Discrete(seat.num_actions))
    return replace(described, masked=True, by_turns=True, history_length=1)


def vector_of(config: EnvConfig, seeds: Sequence[int], build: Build = build) -> TurnsVector | SeatsVector:
    """Environments of one actor, of games that `build` makes. Raises EnvError."""
    game = build(config)
    by_turns = is_by_turns(game)
    game.close()
    return (TurnsVector if by_turns else SeatsVector)(config, seeds, build)


def playback_of(config: EnvConfig, seed: int, build: Build = build) -> Playback:
    """The replay of a game from its seed and all moves, with the game's own pictures. Raises EnvError."""
    seats = described(build(config), config).seats
    env = vector_of(config, [seed] * seats, lambda config, _=None: build(config, "rgb_array"))
    env.game = config.game
    game = env.first_game
    if not hasattr(game, "render"):
        env.close()
        raise EnvError(f"{config.game} cannot be filmed: it has no render().")
    return VectorPlayback(env, lambda _: drawn(lambda: _as_bytes(game.render()), config.game))


def _as_bytes(picture: Any) -> Any:
    return None if picture is None else np.asarray(picture, np.uint8)


FAMILY = Family(
    lambda game: game if game.startswith(PREFIX) else None,
    known_names,
    lambda config: described(build(config), config),
    vector_of,
    playback_of,
    reads=("env_args", "resize", "grey"),
)
