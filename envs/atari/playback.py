"""One ALE episode replayed with the screens in colour."""

from envs.atari.game import AleGame, Grey
from envs.config import EnvConfig
from envs.contract import Action, Screen, checked_seeds


class AlePlayback:
    """Replays the episode that starts when an environment is reset with `seed`."""

    def __init__(self, config: EnvConfig, seed: int) -> None:
        (self._seed,) = checked_seeds([seed], 1)
        self._game = AleGame(config, on_frame=self._film)
        self._screens: list[Screen] = []

    def first(self) -> Grey:
        """Starts the episode and returns its first frame [84, 84]."""
        return self._game.reset(self._seed)

    def step(self, action: Action) -> tuple[Grey, list[Screen]]:
        """Returns the frame [84, 84] after `action` (0 to 17), and this step's screens [210, 160, 3]."""
        self._screens = []
        frame, _ = self._game.step(int(action))
        return frame, self._screens

    def _film(self) -> None:
        self._screens.append(self._game.ale.getScreenRGB())
