"""The bodies of one behavior of ML-Agents' present protocol, each in a place that stays.

Bodies ask for actions when they like: most every fifth step of the physics, and a new one at its first. A
step of the B bodies here lasts until each has asked again since it got its action; one that has asked earlier
repeats its action meanwhile, and its rewards add up. An episode that begins and ends within a step is not
seen. A body has a new number in each episode: an episode that begins takes a place that is free.

An action that a body may not take is replaced by the first that it may.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from envs.config import EnvError
from envs.contract import Flags
from envs.unity.protocols.bodies import Bodies, Brain, PlayerFailed
from envs.unity.protocols.messages import Choice
from envs.unity.protocols.observations import Shapes

_MOST_REPEATS = 200
"""How often a body's action may be repeated while another body is waited for: 20 seconds at one decision in
five steps of physics.
"""


class Behavior:
    """B bodies, as many as ask first; one that comes later and finds no place takes action 0."""

    def __init__(self, said: Any, info: Any, channels_first: bool) -> None:
        """`said`: the player's message on the behavior, and `info` on one of its bodies."""
        self._shapes = Shapes(tuple(tuple(each.shape) for each in info.observations), channels_first)
        numbers, branches = _actions(said)
        self._branches: Sequence[int] = branches
        self.brain = Brain(
            said.name,
            self._shapes.numbers,
            numbers or int(np.prod(branches)),
            numbers > 0,
            self._shapes.cameras,
            mixed=numbers > 0 and len(branches) > 0,
            has_rules=True,
        )
        self._count: int | None = None
        self.begin_anew()

    def begin_anew(self) -> None:
        """Whoever asks now gets a place, and is waited for."""
        self._places = dict[int, int]()  # of the bodies in an episode, by their numbers
        self._turn = list[tuple[int | None, Sequence[bool]]]()
        """Place (None: it has none) and forbidden actions of those that asked in the last call."""
        self._begin_step(None)

    def begin_step(self, actions: npt.NDArray[Any]) -> None:
        """Takes the actions of the first n places."""
        self._count = self._count or len(self._answered)
        self._begin_step(actions)

    def _begin_step(self, actions: npt.NDArray[Any] | None) -> None:
        self._actions = actions
        self._has_acted = set[int]()
        self._answered = dict[int, Any]()  # what the places have said, once they had got their actions
        self._ended = dict[int, Any]()  # the last word of those whose episode has ended
        self._rewards = dict[int, float]()
        self._repeats = Counter[int]()

    def hear(self, infos: Iterable[Any]) -> None:
        """What the bodies say in one call."""
        self._turn = []
        for info in infos:
            if info.done:
                self._end(info)
            else:
                self._ask(info)

    @property
    def is_complete(self) -> bool:
        """Whether the step is over."""
        count = self._count or max(1, len(self._answered))
        return all(place in self._answered for place in range(count))

    def choices(self) -> list[Any]:
        """The actions of those that asked in the last call, in its order."""
        self._has_acted.update(place for place, _ in self._turn if place is not None)
        return [self._choice(place, mask) for place, mask in self._turn]

    def bodies(self, watched: bool) -> Bodies:
        """All places after a step, with pictures where they are `watched`.

        Raises PlayerFailed where a body is not as announced.
        """
        count = len(self._answered)
        ended = np.array([place in self._ended for place in range(count)])
        cut = [place for place, info in self._ended.items() if info.max_step_reached]
        truncated = np.array([place in cut for place in range(count)])
        rewards = np.array([self._rewards.get(place, 0.0) for place in range(count)])
        last = self._read({**self._answered, **self._ended}, watched) if self._ended else None
        return self._read(self._answered, watched)._replace(
            rewards=rewards, ended=ended, truncated=truncated, last=last
        )

    def _end(self, info: Any) -> None:
        place = self._places.pop(info.id, None)
        if place is None:
            return
        self._answered.pop(place, None)
        if place not in self._ended:
            self._add_reward(place, info)
            self._ended[place] = info

    def _ask(self, info: Any) -> None:
        place = self._places.get(info.id, self._free_place())
        self._turn.append((place, info.action_mask))
        if place is None:
            return
        self._places[info.id] = place
        if place not in self._ended:
            self._add_reward(place, info)
        if self._actions is None or place in self._has_acted or place in self._ended:
            self._answered[place] = info
            self._check_repeats(place)

    def _check_repeats(self, place: int) -> None:
        self._repeats[place] += 1
        if self._actions is not None and self._repeats[place] > _MOST_REPEATS:
            raise EnvError(
                f"A body of {self.brain.name} has asked for {_MOST_REPEATS} actions while another asked for"
                " none: scenes whose bodies leave for good, or pause for long, are not played."
            )

    def _add_reward(self, place: int, info: Any) -> None:
        self._rewards[place] = self._rewards.get(place, 0.0) + info.reward + info.group_reward

    def _free_place(self) -> int | None:
        taken = set(self._places.values())
        count = len(taken) + 1 if self._count is None else self._count
        return next((place for place in range(count) if place not in taken), None)

    def _choice(self, place: int | None, mask: Sequence[bool]) -> Any:
        action: npt.NDArray[Any] = np.zeros(self.brain.actions if self.brain.continuous else ())
        if self._actions is not None and place in range(len(self._actions)) and place not in self._ended:
            action = self._actions[place]
        if self.brain.continuous:
            return Choice(continuous=action.tolist(), old_action=action.tolist())
        legal = self._legal(mask)
        chosen = int(action) if legal[int(action)] else int(legal.argmax())
        branches = [int(number) for number in np.unravel_index(chosen, self._branches)]
        return Choice(discrete=branches, old_action=branches)

    def _read(self, infos: Mapping[int, Any], watched: bool) -> Bodies:
        in_order = [infos[place] for place in range(len(infos))]
        numbers = np.stack([self._shapes.read_numbers(info.observations) for info in in_order])
        seen, legal = None, None
        if watched and self.brain.cameras:
            seen = np.stack([self._shapes.read_picture(info.observations) for info in in_order])
        if not self.brain.continuous:
            legal = np.stack([self._legal(info.action_mask) for info in in_order])
        nothing = np.zeros(len(infos), np.bool_)
        return Bodies(numbers, seen, legal, np.zeros(len(infos)), nothing, nothing, None)

    def _legal(self, mask: Sequence[bool]) -> Flags:
        """[A]; `mask` has the forbidden actions of all branches, one branch after the other, or nothing."""
        if len(mask) not in (0, sum(self._branches)):
            raise PlayerFailed(f"forbids actions of {len(mask)}, and announced {sum(self._branches)}")
        free = ~np.array(mask or [False] * sum(self._branches), np.bool_)
        legal = np.ones(1, np.bool_)
        for branch in np.split(free, np.cumsum(self._branches)[:-1]):
            legal = np.logical_and.outer(legal, branch).ravel()
        return legal


def _actions(said: Any) -> tuple[int, tuple[int, ...]]:
    """How many numbers an action has, and how many choices each of its branches."""
    if said.actions.continuous or said.actions.discrete:
        return said.actions.continuous, tuple(said.actions.branches)
    sizes = tuple(said.old_action_sizes)
    return (sum(sizes), ()) if said.old_action_kind == 1 else (0, sizes)
