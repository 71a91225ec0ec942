"""The family of Unity's builds that speak a protocol of ML-Agents: "unity:3dball", "unity:/path/to/build".

A build has B bodies (3DBall: 12), and each is an environment: N environments take N / B players, rounded up.
Bodies that nobody plays take action 0. What the protocols cannot do shows here:

* No episode can be repeated or filmed: the first protocol has no seed, and the present one's is of the scene.
* A body begins anew by itself in the step that ends its episode. The frame that comes then is the next
  episode's first; in the first protocol the last frame seen of the one that ended stands for its last. Where
  the caller does not reset a row, the next episode's first step is played unseen, with action 0: the vector
  step that Gymnasium's NEXT_STEP spends on an autoreset moves every body.
* No body can be restarted alone. One that --max-episode-steps stopped goes on from where it stands, and so
  may soon come to a limit of its own; a reset of all rows of a player restarts its scene.
* Why an episode ended the first protocol does not say: it is a termination, but a truncation where the whole
  scene's time is up. An episode that began later than its scene counts as interrupted then: chance decided
  its length. The present protocol says whether a body's own limit of steps ended it.

A player that hangs or dies is killed and started again, and the episodes of its rows are truncated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from envs.config import EnvConfig, EnvDescription, EnvError, EnvFailure, description_from_spaces
from envs.contract import SeededVectorEnv
from envs.playback import Playback
from envs.registry import Family
from envs.unity.arguments import Arguments, spaces_of
from envs.unity.builds import PREFIX, SHIPPED, find_build
from envs.unity.protocols.bodies import Brain, Camera, PlayerLimits
from envs.unity.protocols.player import UnityPlayer
from envs.unity.scene import BrainPart, UnityScene, begin_scenes
from envs.unity.shared import SharedScenes
from envs.unity.vector import UnityVector

__all__ = ["FAMILY", "lone_brain"]

_KNOWN = {
    "gridworld": Brain("GridBrain", 6, 4, False, (Camera(32, 32, 1),)),
    "3dball": Brain("Ball3DBrain", 8, 2, False, ()),
}
"""What the shipped builds announce: a learner describes them without having them."""


def lone_brain(
    config: EnvConfig, seeds: Sequence[int], limits: PlayerLimits | None = None
) -> SeededVectorEnv:
    """The bodies of one brain. Raises EnvError where there is no such build, or it knows no such argument."""
    parts, limits = [Arguments.of(config)], limits or PlayerLimits()
    first = BrainPart(UnityScene(config, parts, limits, seeds[0]))
    try:
        others = begin_scenes(config, parts, limits, seeds[first.bodies :: first.bodies])
    except BaseException:  # Ctrl-C too
        first.close()
        raise
    return UnityVector(config, seeds, [first, *map(BrainPart, others)])


@cache
def _announced(program: Path) -> Mapping[str, Brain]:
    """The brains of a build, which is started to be asked. Raises EnvFailure."""
    try:
        player = UnityPlayer(program, PlayerLimits())
    except OSError as failure:
        raise EnvFailure(f"The Unity player {program.name} {failure}.") from failure
    player.close()
    return player.conversation.brains


def _describe(config: EnvConfig) -> EnvDescription:
    arguments, name = Arguments.of(config), config.game.removeprefix(PREFIX)
    known = {_KNOWN[name].name: _KNOWN[name]} if name in _KNOWN else _announced(find_build(config.game))
    brain = arguments.choose(known, config.game)
    described = description_from_spaces(*spaces_of(brain, arguments, config.game))
    return replace(described, masked=arguments.masks)


def _playback(config: EnvConfig, seed: int) -> Playback:
    raise EnvError(
        f"{config.game} cannot be filmed or replayed, since its player has no seed and no picture: "
        "--record NAME.png draws the numbers that it shows."
    )


FAMILY = Family(
    lambda game: game if game.startswith(PREFIX) else None,
    lambda: [PREFIX + name for name in SHIPPED],
    _describe,
    lone_brain,
    _playback,
    share=SharedScenes,
    needs=find_build,
    reads=("env_args",),
)
