"""Games of two players by turns, each an environment that is seen by whoever is to move."""

from collections.abc import Sequence
from typing import Any

from gymnasium.spaces import Discrete

from envs.config import EnvConfig, EnvError
from envs.legal import allows_any, legal_actions
from envs.multi.games import Build, build
from envs.multi.observed import seat_of, turn_frame, turn_space
from envs.playback import Frames
from envs.saving import State
from envs.solo import SoloStep, SoloVector


class Duel:
    """One game after another between two seats."""

    def __init__(self, game: Any, config: EnvConfig) -> None:
        name = config.game
        if len(game.possible_agents) != 2:
            raise EnvError(f"{name} is played by turns and has {len(game.possible_agents)} seats, not 2.")
        self.game, self._name, self._config = game, name, config
        self.seat = seat_of(game, name)

    def begin(self, seed: int) -> Frames:
        """Starts a game; returns what the first player sees."""
        self.game.reset(seed=seed)
        self.seed, self.moves = seed, list[int]()
        return self._seen(self.game.agent_selection, is_over=False)

    def step(self, action: int) -> SoloStep:
        """As `move`, but where the rules forbid it: EnvError. --max-episode-steps truncates."""
        if not self._legal[action]:
            raise EnvError(f"The rules of {self._name} forbid action {action} there.")
        moved = self.move(int(action))
        is_late = len(self.moves) == self._config.max_episode_steps
        return moved._replace(truncated=moved.truncated or (is_late and not moved.terminated))

    def move(self, action: int) -> SoloStep:
        """The frame of the player who did not move, the reward of the one who did.

        Raises EnvError where the game is not by strict turns, one player's loss is not the other's gain, one
        is out before the other, or nothing is legal.
        """
        game, mover = self.game, self.game.agent_selection
        game.step(action)
        self.moves.append(action)
        terminated, truncated = any(game.terminations.values()), any(game.truncations.values())
        is_over = terminated or truncated
        if abs(sum(game.rewards.values())) > 1e-6:
            raise EnvError(f"In {self._name} one player's gain is not the other's loss: {game.rewards}.")
        if is_over and not all(
            over or game.truncations.get(seat, False) for seat, over in game.terminations.items()
        ):
            raise EnvError(f"In {self._name} one player is out before the other, which is not known here.")
        if not is_over and game.agent_selection == mover:
            raise EnvError(f"In {self._name} one player moves twice in a row: only strict turns are known.")
        waiting = next(seat for seat in game.possible_agents if seat != mover)
        frame, reward = self._seen(waiting, is_over), float(game.rewards[mover])
        return SoloStep(frame, reward, terminated, truncated and not terminated)

    def close(self) -> None:
        """Ends the game."""
        self.game.close()

    def _seen(self, seat: str, is_over: bool) -> Frames:
        """What `seat` sees; the game's own selection may be the mover where the game is over."""
        info = getattr(self.game, "infos", {}).get(seat, {})
        frame = turn_frame(self.seat, self.game.observe(seat), info, self._config)
        if not (is_over or allows_any(frame, self.seat.num_actions)):
            raise EnvError(f"In {self._name} no action is legal, and the game is not over.")
        self._legal = legal_actions(frame[None], self.seat.num_actions)[0]
        return frame


class TurnsVector(SoloVector):
    """N duels: frames [N, *frame] of `turn_space`, seen by whoever is to move.

    A reward is the mover's. What a duel shows at its end is what the other player sees then.
    """

    masked = True

    def __init__(self, config: EnvConfig, seeds: Sequence[int], build: Build = build) -> None:
        self._duels = [Duel(build(config), config) for _ in seeds]
        seat = self._duels[0].seat
        super().__init__(turn_space(seat, config), Discrete(seat.num_actions), self._duels, seeds)

    def state_dict(self) -> State:
        """The seed and the moves of every duel: together they give it again."""
        return {
            "generators": [each.bit_generator.state for each in self._generators],
            "duels": [
                [duel.seed, bool(ended), *duel.moves]
                for duel, ended in zip(self._duels, self._ended, strict=True)
            ],
        }

    def load_state_dict(self, state: State) -> None:
        """Plays the same moves again."""
        for row, (seed, ended, *moves) in enumerate(state["duels"]):
            self._generators[row].bit_generator.state = state["generators"][row]
            self._frames[row] = self._duels[row].begin(seed)
            for move in moves:
                self._frames[row] = self._duels[row].move(move).frame
            self._ended[row] = ended

    @property
    def first_game(self) -> Any:
        """The first of PettingZoo's games."""
        return self._duels[0].game
