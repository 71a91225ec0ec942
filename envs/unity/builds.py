"""Where a build of Unity lies: one that SLM-Lab used, which the set-up fetches, or one of the user's own."""

import os
from pathlib import Path

from envs.config import EnvError

PREFIX = "unity:"
SHIPPED = ("gridworld", "3dball")
"""Names of the builds in npm's packages slm-env-gridworld and slm-env-3dball 2.0.0 (Apache-2.0; Unity 2017.2,
Linux x86-64).
"""
_FETCHED = Path(__file__).resolve().parents[2] / ".unity"


def find_build(game: str) -> Path:
    """The program of "unity:3dball" or "unity:/path/to/build", with or without .x86_64.

    Raises:
        EnvError: there is none.
    """
    name = game.removeprefix(PREFIX)
    if name in SHIPPED:
        program = _FETCHED / name / "package" / "build" / f"{name}.x86_64"
        if not program.exists():
            raise EnvError(f"{game} is not here: `EXTRAS=unity bash scripts/setup.sh` fetches it by npm.")
        return program
    for program in (Path(name), Path(f"{name}.x86_64")):
        if program.is_file() and os.access(program, os.X_OK):
            return program.resolve()
    raise EnvError(f"There is no program {name} or {name}.x86_64 that may be started.")
