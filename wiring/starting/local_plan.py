"""A run on this machine, in one terminal: its processes, and the commands that its last words name."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from args import read_args
from envs.registry import family_name
from own_code.folder_imports import ROOT
from supervision.child import ChildSpec, thread_limits
from supervision.last_words import last_words
from wiring.starting.run_plan import Command, RunPlan, from_here

LIGHTER = {
    "iqn": "specs/atari/rainbow_iqn_cpu.yaml",
    "rainbow": "specs/atari/rainbow_iqn_cpu.yaml",
    "ppo_rnd": "specs/atari/rnd_cpu.yaml",
}
"""Agents -> the spec of Atari, or of a user's own images, that two cores can train."""


@dataclass(frozen=True)
class LocalPlan(RunPlan):
    """What start_learning.py starts, and says."""

    cores: int
    given: Sequence[str]
    """The user's own words, without what the spec of the kind of game adds."""

    def learner(self) -> ChildSpec:
        """The learner's process."""
        threads = learner_threads(self.cores, self.args.nb_actor, self.args.synchronize_actors_with_learner)
        return self.learner_process(max(threads // self.args.learners, 1), self._gpu(0))

    def actors(self) -> list[ChildSpec]:
        """The actors' processes; none where --serial makes one process of all."""
        numbers = range(0 if self.args.serial else self.args.nb_actor)
        return [self.actor_process(number, words=self._gpu(1 + number)) for number in numbers]

    def page(self) -> ChildSpec:
        """The process of the live page."""
        return ChildSpec("page", Command("live_page.py", self.argv), self.log("page"), thread_limits(1))

    @property
    def lighter(self) -> str:
        """What to do where the run takes days."""
        has_lighter = family_name(self.args.games[0]) in ("atari", "gym.own")
        spec = LIGHTER.get(self.args.agent) if has_lighter else None
        if spec is None or spec in str(self.args.spec):
            return "A lower --T-max ends it earlier."
        return f"--spec {spec} is for two CPU cores."

    def last_words(self, finished: bool) -> list[str]:
        """The paths of all results, and the commands that evaluate a finished run or go on with another."""
        program = shlex.split(os.environ.get("START_COMMAND", f"{_python()} {_program('start_learning.py')}"))
        evaluation = self.evaluation() if finished else ()
        return last_words(self.folder, self.args.file_name, [*program, *self.given], evaluation)

    def evaluation(self) -> list[str]:
        """The command that plays a snapshot; code of the user's own has to be named again."""
        asked = read_args(self.given)
        is_elsewhere = "path_to_results" in asked.model_fields_set
        place = ["--path-to-results", asked.path_to_results] if is_elsewhere else []
        return [_python(), _program("test_multiple_seed.py"), *asked.own_code, *place]

    def _gpu(self, place: int) -> list[str]:
        numbers = self.args.gpu_numbers
        return [] if numbers is None else ["--gpu-number", numbers.split(",")[place]]


def learner_threads(cores: int, actors: int, synchronised: bool) -> int:
    """CPU threads that a learner with a large network may take; a small one and an actor take one each
    (`wiring.setting.set_up_torch`).

    Synchronised actors wait for the learner nearly all the time, so it may use every core. Actors that do not
    wait keep a core busy each; the learner gets the rest, and at least half.
    """
    return cores if synchronised else max(cores - actors, cores // 2, 1)


def _program(name: str) -> str:
    return from_here(str(ROOT / name))


def _python() -> str:
    """This interpreter as a user may type it: the terminal's plain `python` may lack the packages."""
    plain = shutil.which("python", path=os.environ.get("TERMINAL_PATH"))
    return "python" if plain == sys.executable else from_here(sys.executable)
