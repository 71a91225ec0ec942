"""One session: a run of its own with a folder, a name and a record of how it went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field

from args import Plain, UserError
from lab.files import read_whole
from lab.spec import Experiment
from reporting.atomic import write_atomically

DONE = ("finished", "out of time")
"""States after which a session is not run again."""
STATES = ("new", "running", *DONE, "stopped", "failed")


@dataclass(frozen=True)
class Session:
    """A run and its folder."""

    experiment: Experiment
    trial: str
    number: int  # within the trial, from 0
    changes: Mapping[str, Plain]  # flags that differ from the experiment's
    folder: Path

    @property
    def name(self) -> str:
        """Its name in a sentence."""
        return f"{self.experiment.name} {self.trial} session {self.number}"

    @property
    def spec(self) -> Path:
        """Its own spec: a plain one, which --spec reads."""
        return self.folder / "spec.yaml"

    def prepare(self) -> None:
        """Write its spec. Raises UserError where the folder holds a session of another one."""
        flags = {**self.experiment.flags, **self.changes}
        words = {name.replace("_", "-"): value for name, value in flags.items()}
        text = f"# {self.name}, of {self.experiment.file.name}\n" + yaml.safe_dump(words, sort_keys=False)
        if self.spec.exists() and self.spec.read_text(encoding="utf-8") != text:
            raise UserError(
                f"{self.folder} holds a session of another spec: move it away, or remove it with"
                f" `python run_lab.py reset {self.experiment.name}`."
            )
        write_atomically(self.spec, text.encode())


def trial_sessions(
    experiment: Experiment, folder: Path, changes: Mapping[str, Plain], count: int
) -> list[Session]:
    """A trial's sessions, each with the changed flags and a seed of its own: --seed, --seed + 1, ..."""
    seed = experiment.args().seed
    return [
        Session(
            experiment, folder.name, number, {**changes, "seed": seed + number}, folder / f"session_{number}"
        )
        for number in range(count)
    ]


@dataclass(frozen=True)
class Record:
    """How a session went so far: `session.json`."""

    state: Annotated[str, Field(pattern=f"^({'|'.join(STATES)})$")] = "new"
    why: str = ""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0  # that it has run, over all its starts
    pid: int = 0
    began: int = 0  # start of that process, so that its number is not taken for another's

    @property
    def is_done(self) -> bool:
        """Whether it need not run again."""
        return self.state in DONE


def read_record(folder: Path) -> Record:
    """The record in a session's folder; a new one where there is none. Raises UserError if damaged."""
    cure = "and the session resumes from its snapshot"
    return read_whole(folder / "session.json", Record, cure) or Record()


def known_record(folder: Path) -> Record:
    """The same, but a session whose record is damaged counts as failed."""
    try:
        return read_record(folder)
    except UserError as error:
        return Record("failed", str(error))


def write_record(folder: Path, record: Record) -> None:
    """Whole or not at all."""
    write_atomically(folder / "session.json", json.dumps(asdict(record), indent=2).encode() + b"\n")


def steps_played(folder: Path) -> int:
    """T_actors of the newest snapshot in a folder; 0 where there is none."""
    snapshots = folder.glob("last_model_*.pth")
    return max((int(path.stem.rpartition("_")[2]) for path in snapshots), default=0)
