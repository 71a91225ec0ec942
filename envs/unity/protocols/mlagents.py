"""ML-Agents' present protocol: protocol buffers over gRPC, communication version 1 (package 1.0 to 4.0).

The player calls, and the answer says what it does next. Its first call says who it is, and its second
nothing. From then on a call comes whenever a body has something to say: an Info for each whose episode has
ended, and for each that asks for an action.
"""

from collections.abc import Callable, Mapping
from typing import Any

from envs.unity.protocols.behaviors import Behavior
from envs.unity.protocols.bodies import Actions, Bodies, Brain, PlayerFailed
from envs.unity.protocols.calls import Calls
from envs.unity.protocols.messages import Message
from envs.unity.protocols.side_channels import TIME_SCALE, engine_settings, float_parameter

_VERSION, _PACKAGE = "1.5.0", "1.1.0"  # of the protocol, and of the mlagents-envs that we stand for
_STEP, _RESET = 0, 1
_CHANNELS_FIRST = 3  # since this version of Unity's package
_PATIENCE = 10000
"""Most calls within a step: far more than the steps of physics between two decisions of a body."""


class PresentProtocol:
    """The conversation with a player that has called. Every method may raise PlayerFailed.

    Args:
        is_running: Whether the player does.
        seed: Of the scene's chance.
    """

    reset_parameters: dict[str, float] | None = None

    def __init__(self, calls: Calls, is_running: Callable[[], bool], seed: int) -> None:
        self._calls, self._is_running = calls, is_running
        self._behaviors, self.watched = dict[str, Behavior](), set[str]()
        self._channels_first = self._greet(seed)
        self.reset({})

    @property
    def brains(self) -> dict[str, Brain]:
        """The brains whose bodies have sent something."""
        return {name: behavior.brain for name, behavior in self._behaviors.items()}

    def reset(self, parameters: Mapping[str, float]) -> dict[str, Bodies]:
        """Starts the whole scene anew; returns the bodies of each brain that asks at once."""
        message = Message()
        message.unity_input.rl_input.command = _RESET
        message.unity_input.rl_input.side_channel = _side_channel(parameters)
        for behavior in self._behaviors.values():
            behavior.begin_anew()
        self._exchange(message)
        self._exchange_until(lambda: any(each.is_complete for each in self._behaviors.values()))
        return self._bodies({name: each for name, each in self._behaviors.items() if each.is_complete})

    def step(self, actions: Actions) -> tuple[dict[str, Bodies], bool]:
        """Takes actions for the first n bodies of each brain that has some; all others take action 0."""
        played = {name: self._behaviors[name] for name in actions}
        for name, behavior in played.items():
            behavior.begin_step(actions[name])
        self._exchange(self._choices())
        self._exchange_until(lambda: all(behavior.is_complete for behavior in played.values()))
        return self._bodies(played), False

    def close(self) -> None:
        """Asks the player to end."""
        self._calls.close()

    def _bodies(self, behaviors: Mapping[str, Behavior]) -> dict[str, Bodies]:
        return {name: each.bodies(name in self.watched) for name, each in behaviors.items()}

    def _greet(self, seed: int) -> bool:
        """Whether pictures are [C, h, w]."""
        said = self._hear().initialization
        version, package = (_major(each) for each in (said.communication_version, said.package_version))
        if version != _major(_VERSION):
            raise PlayerFailed(f"speaks version {said.communication_version} of ML-Agents' protocol, not 1")
        message = Message()
        welcome = message.unity_input.initialization
        welcome.seed, welcome.num_areas = seed % 2**31, 1
        welcome.communication_version, welcome.package_version = _VERSION, _PACKAGE
        for capability in welcome.capabilities.DESCRIPTOR.fields:
            setattr(welcome.capabilities, capability.name, True)
        self._calls.answer(message)
        self._hear()
        return package >= _CHANNELS_FIRST

    def _exchange_until(self, is_complete: Callable[[], bool]) -> None:
        for _ in range(_PATIENCE):
            if is_complete():
                return
            self._exchange(self._choices())
        raise PlayerFailed(f"has bodies that ask for no action in {_PATIENCE} calls")

    def _choices(self) -> Any:
        message = Message()
        message.unity_input.rl_input.command = _STEP
        for name, behavior in self._behaviors.items():
            if choices := behavior.choices():
                message.unity_input.rl_input.of_behavior.add(key=name).value.value.extend(choices)
        return message

    def _exchange(self, message: Any) -> None:
        self._calls.answer(message)
        said = self._hear()
        infos = {each.key: each.value.value for each in said.rl_output.of_behavior}
        for described in said.initialization.brain_parameters:
            name = described.name
            if name not in self._behaviors and infos.get(name):
                self._behaviors[name] = Behavior(described, infos[name][0], self._channels_first)
        for name, behavior in self._behaviors.items():
            behavior.hear(infos.get(name, ()))

    def _hear(self) -> Any:
        return self._calls.next(self._is_running).unity_output


def _side_channel(parameters: Mapping[str, float]) -> bytes:
    of_scene = {name: value for name, value in parameters.items() if name != "time_scale"}
    settings = engine_settings(parameters.get("time_scale", TIME_SCALE))
    return settings + b"".join(float_parameter(name, value) for name, value in of_scene.items())


def _major(version: str) -> int:
    """The first number of a version, 2 for "2.3.0-exp.3"; 0 for what is no version."""
    number = version.split(".")[0]
    return int(number) if number.isdecimal() else 0
