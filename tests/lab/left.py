"""Files that a session leaves, written without playing it; and a program to stand for its evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from lab.session import SessionRecord, write_record
from reporting.model_files import last_model_path
from reporting.tables import EpisodeRecord, EpisodeTable

FINISHED = SessionRecord("finished")


def leave_session(
    folder: Path, scores: Mapping[str, float], record: SessionRecord = FINISHED, steps: int = 0
) -> None:
    """An episode of each game in training, a point worse than its evaluation.

    `steps`: after which it saved a snapshot, which no program can load; 0: it saved none.
    """
    folder.mkdir(parents=True)
    write_record(folder, record)
    run = {"arguments": {"game": ",".join(scores)}, "seed": 1, "commit": None}
    (folder / "run_some.json").write_text(json.dumps(run))
    EpisodeTable(folder / "some.csv").add(
        EpisodeRecord(actor, 0, 0, 10, 0, score - 1, score - 1, score - 1, 5, game=game)
        for actor, (game, score) in enumerate(scores.items())
    )
    for number, (game, score) in enumerate(scores.items()):
        (folder / f"evaluation_{number}.json").write_text(json.dumps({"game": game, "mean": score}))
    if steps:
        last_model_path(folder, "some", steps).touch()


def program_that_ends(path: Path, code: int) -> Path:
    """A program that says its words and ends with this exit code."""
    path.write_text(f"import sys\nprint(*sys.argv[1:], flush=True)\nsys.exit({code})\n")
    return path
