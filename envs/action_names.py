"""What the discrete actions of a game are called."""

from __future__ import annotations

from fnmatch import fnmatchcase

ATARI = (
    "noop fire up right left down up-right up-left down-right down-left up-fire right-fire left-fire"
    " down-fire up-right-fire up-left-fire down-right-fire down-left-fire"
).split()
"""The full action set of ALE, in its order."""
GYMNASIUM = {
    "CartPole-v*": "left right",
    "Acrobot-v*": "torque-−1 torque-0 torque-+1",
    "MountainCar-v*": "left coast right",
    "LunarLander-v*": "nothing left-engine main-engine right-engine",
    "FrozenLake-v*": "left down right up",
    "CliffWalking-v*": "up right down left",
    "Taxi-v*": "south north east west pick-up drop-off",
    "Blackjack-v*": "stick hit",
    "minatar:*": "noop left up right down fire",
    "probe:catch": "left stay right",
}
"""Pattern of games -> names of their actions in order, as the environments' own documentation has them."""


def action_names(game: str, count: int) -> tuple[str, ...]:
    """One name for each of `count` actions; "action 0" where they have no names here."""
    names = next((row.split() for pattern, row in GYMNASIUM.items() if fnmatchcase(game, pattern)), None)
    if names is None and ":" not in game and "/" not in game:
        names = _of_ale(game, count)
    if names is None or len(names) != count:
        return tuple(f"action {number}" for number in range(count))
    return tuple(name.replace("-", " ") for name in names)


def _of_ale(game: str, count: int) -> list[str] | None:
    """All 18, or those that a game reads where they are as many; None where neither is so."""
    if count == len(ATARI):
        return ATARI
    from envs.atari.games import canonical_name, minimal_actions  # an emulator, which no other game needs

    known = canonical_name(game)
    return None if known is None else [ATARI[action] for action in minimal_actions(known)]
