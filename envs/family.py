"""A family of environments: one object that tells the registry all it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from envs.config import EnvConfig, EnvDescription
from envs.contract import Playback, SeededVectorEnv


@dataclass(frozen=True)
class Family:
    """How the games of one kind are named, described, built and replayed.

    The last three functions are only called with `config.game` in the form that `canonical_name` returns.
    """

    name: str
    canonical_name: Callable[[str], str | None]  # a game's one name; None for a game of another family
    known_names: Callable[[], Sequence[str]]  # what a user may have meant
    describe: Callable[[EnvConfig], EnvDescription]
    make: Callable[[EnvConfig, Sequence[int]], SeededVectorEnv]
    playback: Callable[[EnvConfig, int], Playback]
