"""Games of two players by turns, each an environment that is seen by whoever is to move."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from envs.config import EnvConfig, EnvError
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.legal import allows_any, legal_actions
from envs.multi.games import Build, build
from envs.multi.observed import seat_of, turn_frame, turn_space
from envs.playback import Frames
from envs.saving import State
from envs.seeding import draw_seed, seed_rows


class Duel:
    """One game after another between two seats."""

    def __init__(self, game: Any, config: EnvConfig) -> None:
        name = config.game
        if len(game.possible_agents) != 2:
            raise EnvError(f"{name} is played by turns and has {len(game.possible_agents)} seats, not 2.")
        self.game, self._name, self._config = game, name, config
        self.seat = seat_of(game, name)
        self.moves: list[int] = []
        self.is_over = True

    def begin(self, seed: int) -> Frames:
        """Starts a game; returns what the first player sees."""
        self.game.reset(seed=seed)
        self.seed, self.moves, self.is_over = seed, [], False
        return self._seen(self.game.agent_selection)

    def move(self, action: int) -> tuple[Frames, float, bool, bool]:
        """Frame of the player who did not move, reward of the one who did, termination, truncation.

        Raises EnvError where the game is not by strict turns, one player's loss is not the other's gain, one
        is out before the other, or nothing is legal.
        """
        game, mover = self.game, self.game.agent_selection
        game.step(action)
        self.moves.append(action)
        terminated, truncated = any(game.terminations.values()), any(game.truncations.values())
        self.is_over = terminated or truncated
        if abs(sum(game.rewards.values())) > 1e-6:
            raise EnvError(f"In {self._name} one player's gain is not the other's loss: {game.rewards}.")
        if self.is_over and not all(
            over or game.truncations.get(seat, False) for seat, over in game.terminations.items()
        ):
            raise EnvError(f"In {self._name} one player is out before the other, which is not known here.")
        if not self.is_over and game.agent_selection == mover:
            raise EnvError(f"In {self._name} one player moves twice in a row: only strict turns are known.")
        waiting = next(seat for seat in game.possible_agents if seat != mover)
        return self._seen(waiting), float(game.rewards[mover]), terminated, truncated and not terminated

    def close(self) -> None:
        """Ends the game."""
        self.game.close()

    def _seen(self, seat: str) -> Frames:
        """What `seat` sees; the game's own selection may be the mover where the game is over."""
        info = getattr(self.game, "infos", {}).get(seat, {})
        frame = turn_frame(self.seat, self.game.observe(seat), info, self._config)
        if not (self.is_over or allows_any(frame, self.seat.num_actions)):
            raise EnvError(f"In {self._name} no action is legal, and the game is not over.")
        self.legal = legal_actions(frame[None], self.seat.num_actions)[0]
        return frame


class TurnsVector(SeededVectorEnv):
    """N duels: frames [N, *frame] of `turn_space`, seen by whoever is to move.

    A reward is the mover's. What a duel shows at its end is what the other player sees then.
    """

    masked = True

    def __init__(self, config: EnvConfig, seeds: Sequence[int], build: Build = build) -> None:
        self._duels = [Duel(build(config), config) for _ in seeds]
        seat = self._duels[0].seat
        super().__init__(turn_space(seat, config), Discrete(seat.num_actions), seeds)
        self._generators = [np.random.default_rng(seed) for seed in seeds]
        self._max_steps = config.max_episode_steps
        space = self.single_observation_space
        self._frames: Frames = np.zeros((self.num_envs, *space.shape), space.dtype)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        for row in seed_rows(self._generators, mask, seeds):
            self._begin(row)
        return self._frames.copy(), {}

    def _begin(self, row: int) -> None:
        self._frames[row] = self._duels[row].begin(draw_seed(self._generators[row]))

    def _advance(self, actions: Actions) -> Steps:
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        for row, action in enumerate(actions.tolist()):
            duel = self._duels[row]
            if duel.is_over:
                self._begin(row)
                continue
            if not duel.legal[action]:
                raise EnvError(f"The rules of {self.game} forbid action {action} there.")
            self._frames[row], rewards[row], terminated[row], truncated[row] = duel.move(action)
            if len(duel.moves) == self._max_steps and not duel.is_over:
                truncated[row] = duel.is_over = True
        return self._frames.copy(), rewards, terminated, truncated, {}

    def state_dict(self) -> State:
        """The seed and the moves of every duel: together they give it again."""
        return {
            "generators": [each.bit_generator.state for each in self._generators],
            "duels": [[duel.seed, duel.is_over, *duel.moves] for duel in self._duels],
        }

    def load_state_dict(self, state: State) -> None:
        """Plays the same moves again."""
        for row, (seed, is_over, *moves) in enumerate(state["duels"]):
            self._generators[row].bit_generator.state = state["generators"][row]
            duel = self._duels[row]
            self._frames[row] = duel.begin(seed)
            for move in moves:
                self._frames[row] = duel.move(move)[0]
            duel.is_over = bool(is_over)

    @property
    def first_game(self) -> Any:
        """The first of PettingZoo's games."""
        return self._duels[0].game

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all games."""
        for duel in self._duels:
            duel.close()
