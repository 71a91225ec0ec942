"""ALE's own vector environment, whose C++ threads play the games.

ale_py.AtariVectorEnv (0.12.1) turns on by default what SABER forbids: reward clipping, no-ops and FIRE at a
reset, no sticky actions, the minimal action set. All of it is set here by hand. Further facts about it:

* A reset with a seed sets ALE's `random_seed` and loads the ROM again; one without a seed (an autoreset) lets
  the generator run on. The generator decides sticky actions and nothing else here.
* `options={"reset_mask": …}` takes one seed per marked environment and reports the others unchanged.
* A frame is the pixelwise maximum of the last two grey pictures, shrunk with OpenCV's INTER_AREA. (Toromanoff
  et al. 2019 first shrank each with INTER_LINEAR: their pixels differ.) The emulator frame that ends an
  episode is not captured, so that in an episode's last frame the previous one still shines through.
* Its actions are places among those that the game knows: 9 in Skiing and Lost Luggage, which read no button,
  the full 18 in all others. It waits forever for one that is out of range.
"""

from typing import Any

import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from envs.atari.games import NUM_ACTIONS, SCREEN, episode_cap
from envs.config import EnvConfig
from envs.contract import Actions


class AleThreads(AtariVectorEnv):
    """`count` copies of the game under SABER's settings, with the protocol's cap.

    All games take the same 18 actions: those that a game does not know do nothing, as on ALEInterface.
    """

    def __init__(self, config: EnvConfig, count: int) -> None:
        super().__init__(
            config.game,
            count,
            max_num_frames_per_episode=episode_cap(config),
            repeat_action_probability=config.proba_sticky_actions,
            full_action_space=True,
            autoreset_mode=AutoresetMode.NEXT_STEP,
            img_height=SCREEN[0],
            img_width=SCREEN[1],
            grayscale=True,
            stack_num=1,
            frameskip=config.action_repeat,
            maxpool=True,
            noop_max=0,
            episodic_life=False,
            life_loss_info=False,
            reward_clipping=False,
            use_fire_reset=False,
        )
        self._places = np.zeros(NUM_ACTIONS, np.int64)  # 0 is that of NOOP
        for place, action in enumerate(self.ale.get_action_set()):
            self._places[action.value] = place

    def step(self, actions: Actions) -> Any:
        """As AtariVectorEnv's, for actions of 0 to 17."""
        return super().step(self._places[actions])
