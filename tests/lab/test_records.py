"""The lab's own json files, damaged: one sentence, and at most one session that fails."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from args import UserError
from lab import commands, runner
from lab.folder import lab_process, stop_lab
from lab.modes import sessions_of
from lab.results import report_experiment, report_trial
from lab.runner import Runner, reason_in
from lab.search.ledger import Ledger
from lab.search.space import Search
from lab.search.trial import TrialRecord, read_trials, write_trial
from lab.session import Session, SessionRecord, known_record, read_record, write_record
from lab.spec import find_experiment
from lab.upkeep import unfinished
from run_lab import main
from supervision.process import Stop
from supervision.score_lines import SCORE

WHOLE = {"state": "finished", "why": "", "seconds": 1.5, "pid": 0, "began": 0}
DAMAGED = {
    "": "Invalid JSON: EOF while parsing",
    '{"state": "fin': "Invalid JSON: EOF while parsing",
    "\udcff": "Invalid JSON",
    "[]": "Input should be an object",
    "{}": "began is missing",
    json.dumps({**WHOLE, "more": 1}): "more does not belong there",
    json.dumps({**WHOLE, "pid": "many"}): "pid: Input should be a valid integer",
    json.dumps({**WHOLE, "state": "ill"}): "state: String should match",
    json.dumps({**WHOLE, "seconds": float("nan")}): "seconds: Input should be",
}


def damage(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.fsencode(text))
    return path


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_record_is_one_sentence(text: str, tmp_path: Path) -> None:
    path = damage(tmp_path / "session.json", text)
    with pytest.raises(UserError) as caught:
        read_record(tmp_path)
    said = str(caught.value)
    assert said.startswith(f"{path} is damaged: {DAMAGED[text]}") and said.endswith("from its snapshot.")
    assert known_record(tmp_path) == SessionRecord("failed", said)


def test_a_whole_record_is_read(tmp_path: Path) -> None:
    damage(tmp_path / "session.json", json.dumps(WHOLE))
    assert read_record(tmp_path) == SessionRecord("finished", seconds=1.5)
    trial = TrialRecord({"lr": 1.0, "baseline": True, "torso": "mlp"}, reports=((10, 0.5),))
    write_trial(tmp_path / "trial_0", trial)
    assert read_trials(tmp_path) == {0: trial}


def test_only_the_session_of_a_damaged_record_fails(tmp_path: Path) -> None:
    first, second = planned(tmp_path)
    path = damage(first.folder / "session.json")
    write_record(second.folder, SessionRecord("finished"))
    lines: list[str] = []
    assert not Runner(Stop(), lines.append).run([first, second], verbose=False)
    assert lines[0].startswith(f"some trial_0 session 0: failed ({path} is damaged: ")
    assert lines[0].endswith(" from its snapshot).")
    assert lines[1:] == ["some trial_0 session 1: finished before."]
    assert path.read_bytes() == b""  # its user decides
    report_trial(first.folder.parent)
    report_experiment(first.folder.parents[1])
    rows = (first.folder.parents[1] / "experiment.csv").read_text().splitlines()[1:]
    assert len(rows) == 1 and rows[0].startswith("trial_0,,2,1,1,")


@pytest.mark.parametrize(
    "words", ["run {spec} some train", "schedule {schedule}", "benchmark {spec}", "benchmark {spec} --table"]
)
def test_a_session_of_another_spec_is_a_mistake(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, before any session is played."""
    root, schedule = tmp_path / "lab", tmp_path / "schedule.json"
    first, _ = planned(tmp_path)
    sessions = root / ("runs" if words.startswith("benchmark") else "")
    damage(sessions / "some/train/trial_0/session_0/spec.yaml", "# none\nagent: dqn\nlr: 0.5\n")
    spec = first.experiment.file
    schedule.write_text(json.dumps({str(spec): {"some": "train"}}))
    with pytest.raises(SystemExit) as ended:
        main([*words.format(spec=spec, schedule=schedule).split(), "--results", str(root)])
    told = capsys.readouterr()
    assert ended.value.code == 2 and not told.out
    assert told.err.startswith(f"error: {sessions}/some/train/trial_0/session_0 holds a session of another")
    assert told.err.endswith("`.\n") and told.err.count("\n") == 1


def test_a_schedule_of_which_a_part_fails_has_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What comes after it is run all the same."""
    spec, schedule, root = tmp_path / "some.yaml", tmp_path / "schedule.json", tmp_path / "lab"
    spec.write_text("# none\ngame: probe:catch\nexperiments: {bad: {agent: dqn}, good: {agent: dqn}}\n")
    schedule.write_text(json.dumps({str(spec): {"bad": "train", "good": "train"}}))
    damage(root / "bad/train/trial_0/session_0/session.json")
    write_record(root / "good/train/trial_0/session_0", SessionRecord("finished"))
    options = {"schedule": schedule, "results": root, "fits": lambda *_, **__: None}
    others = dict.fromkeys(("sync_dir", "detach", "ray_address"))
    assert commands.schedule(Namespace(**options, **others)) == 1
    said = capsys.readouterr().out
    assert "bad trial_0 session 0: failed (" in said and "good trial_0 session 0: finished before." in said


def test_a_lab_says_the_scores_of_its_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an actor's clock and a learner's, which differ, it says nothing."""
    said = ["[2026-11-27T06:00:41] T = 5008 / 10000", f"5,008 / 10,000{SCORE}38.2", "Saved last_model.pth."]
    program = f"import time; print({os.linesep.join(said)!r}, flush=True); time.sleep(1)"
    monkeypatch.setattr(runner, "_command", lambda *_: [sys.executable, "-c", program])
    monkeypatch.setattr(runner, "LINE_EVERY_S", 0.0)
    lines: list[str] = []
    Runner(Stop(), lines.append).run(planned(tmp_path)[:1], verbose=False)
    assert [line for line in lines if "5008" in line or "5,008" in line or "Saved" in line] == [
        f"some trial_0 session 0: {said[1]}"
    ]


def test_a_session_that_is_stopping_has_no_time_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its budget is over; what it says while it saves is in its log."""
    line = f"5,008 / 10,000{SCORE}38.2, 2 min 3 s left"
    saves = f"signal.signal(signal.SIGTERM, lambda *_: print({line!r}, flush=True))"
    program = f"import signal, time; {saves}; signal.pause(); time.sleep(1)"
    monkeypatch.setattr(runner, "_command", lambda *_: [sys.executable, "-c", program])
    monkeypatch.setattr(runner, "LINE_EVERY_S", 0.0)
    spec = planned(tmp_path)[0].experiment.file
    spec.write_text(spec.read_text().replace("sessions: 2", "budget-minutes: 0.05"))
    lines: list[str] = []
    sessions = sessions_of(find_experiment(spec, "some"), "train", tmp_path / "lab")
    Runner(Stop(), lines.append).run(sessions, verbose=False)
    assert line in (sessions[0].folder / "session.log").read_text()
    assert lines[1:] == [
        "some trial_0 session 0: stopping; it saves first.",
        "some trial_0 session 0: out of time.",
    ]


def planned(folder: Path) -> list[Session]:
    spec = folder / "some.yaml"
    spec.write_text(
        "# none\nagent: dqn\ngame: probe:catch\nT-max: 5000\nlearn-start: 1000\nmeta: {sessions: 2}\n"
    )
    return sessions_of(find_experiment(spec, "some"), "train", folder / "lab")


def test_the_same_of_a_trial(tmp_path: Path) -> None:
    damage(tmp_path / "trial_0" / "trial.json", "[]")
    with pytest.raises(UserError, match=r"trial.json is damaged: .*; remove it, and the trial begins"):
        Ledger("some", tmp_path, Search.model_validate({"flags": {}}), print, lambda: None)


@pytest.mark.parametrize("words", ["stop", "attach", "reset --yes"])
def test_who_holds_the_folder_must_be_readable(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = damage(tmp_path / "lab.json", "{}")
    with pytest.raises(SystemExit) as ended:
        main([*words.split(), "--results", str(tmp_path)])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said == f"error: {path} is damaged: began is missing; remove it, once no lab runs there.\n"
    assert path.exists()
    path.write_text('{"pid": 0, "began": 0}')
    assert lab_process(tmp_path) is None


def test_stop_and_clear_name_a_damaged_session(tmp_path: Path) -> None:
    damage(tmp_path / "some" / "train" / "trial_0" / "session_0" / "session.json")
    for work in (stop_lab, unfinished):
        with pytest.raises(UserError, match="session_0/session.json is damaged"):
            work(tmp_path)


def test_the_reason_of_a_failure_is_its_error_not_the_last_word() -> None:
    lines = [
        "T = 400 / 400",
        "learner: error: The loss is not finite; try a lower --lr.",
        "The replay stays in x.",
    ]
    assert reason_in(lines) == "The loss is not finite; try a lower --lr."
    assert reason_in(lines[:1]) == "T = 400 / 400" and reason_in([]) == ""
