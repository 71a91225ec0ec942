"""--env-args of Unity's builds, and what a body sees and does with them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.config import EnvConfig, EnvError
from envs.gym import constructor_arguments
from envs.playback import Frames
from envs.unity.protocols.bodies import Bodies, Brain


@dataclass(frozen=True)
class Arguments:
    """--env-args: what is ours, and the scene's own reset parameters."""

    brain: str  # "": the only one
    actions: int  # that the bodies obey, where the brain announces fewer; 0: as announced
    camera: bool  # whether pictures are observed instead of numbers
    masks: bool  # whether frames end with the actions that are legal
    scene: Mapping[str, float]

    @classmethod
    def of(cls, config: EnvConfig) -> "Arguments":
        """Raises EnvError."""
        given = constructor_arguments(config)
        brain, actions = given.pop("brain", ""), given.pop("actions", 0)
        camera, masks = given.pop("camera", False), given.pop("masks", False)
        is_number = type(actions) is int and actions >= 0
        if not (isinstance(brain, str) and is_number and {type(camera), type(masks)} == {bool}):
            raise EnvError(
                '--env-args of Unity: "brain" is a name, "actions" a number,'
                ' "camera" and "masks" are true or false.'
            )
        if wrong := [name for name, value in given.items() if type(value) not in (int, float)]:
            raise EnvError(f"A scene's parameter must be a number, which {', '.join(wrong)} is not.")
        return cls(brain, actions, camera, masks, given)

    def choose(self, brains: Mapping[str, Brain], game: str) -> Brain:
        """The brain that is played. Raises EnvError."""
        names = [self.brain] if self.brain else list(brains)
        if len(names) != 1 or names[0] not in brains:
            known = ", ".join(brains) or "none"
            raise EnvError(f'{game} has the brains {known}: choose one with --env-args \'{{"brain": "…"}}\'.')
        return brains[names[0]]


def spaces_of(brain: Brain, arguments: Arguments, game: str) -> tuple[Box, Discrete | Box]:
    """The observations and actions of one body. Raises EnvError where it has none such."""
    if arguments.camera and not brain.cameras:
        raise EnvError(f"The bodies of {game} have no camera.")
    if not arguments.camera and not brain.numbers:
        raise EnvError(f"The bodies of {game} have pictures alone: --env-args '{{\"camera\": true}}'.")
    if brain.mixed:
        raise EnvError(f"The bodies of {game} take numbers and choices at once, which no agent here does.")
    if arguments.masks and brain.continuous:
        raise EnvError(f'The actions of {game} are numbers, and "masks" is of choices.')
    if arguments.masks and not brain.has_rules:
        raise EnvError(f"{game} speaks ML-Agents' first protocol, which does not say what is legal.")
    if brain.has_rules and arguments.actions not in (0, brain.actions):
        raise EnvError(f"The bodies of {game} obey {brain.actions} actions, no more and no fewer.")
    if brain.continuous:
        return _seen(brain, arguments, 0), Box(-1.0, 1.0, (brain.actions,), np.float32)
    actions = arguments.actions or brain.actions
    return _seen(brain, arguments, actions if arguments.masks else 0), Discrete(actions)


def _seen(brain: Brain, arguments: Arguments, rules: int) -> Box:
    """`rules`: how many actions a frame allows or forbids."""
    if not arguments.camera:
        return Box(-np.inf, np.inf, (brain.numbers + rules,), np.float32)
    height, width, channels = brain.cameras[0]
    if rules > height * width:
        raise EnvError(f"A picture of {height} x {width} has no room for the rules of {rules} actions.")
    planes = channels + bool(rules)
    return Box(0, 255, (height, width) if planes == 1 else (height, width, planes), np.uint8)


def frames_of(bodies: Bodies, arguments: Arguments) -> Frames:
    """What the bodies observe; envs/legal.py has how rules are written."""
    frames: Frames = bodies.numbers
    if arguments.camera:
        assert bodies.pictures is not None
        frames = bodies.pictures
    if not arguments.masks:
        return frames
    assert bodies.legal is not None
    legal = bodies.legal
    if not arguments.camera:
        return np.concatenate([frames, legal.astype(np.float32)], axis=1)
    plane = np.zeros((len(frames), frames.shape[1] * frames.shape[2]), np.uint8)
    plane[:, : legal.shape[1]] = 255 * legal
    pictures = frames.reshape(*frames.shape[:3], -1)
    return np.concatenate([pictures, plane.reshape(*frames.shape[:3], 1)], axis=3)
