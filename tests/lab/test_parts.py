"""Parts of the lab that need no process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from args import UserError
from lab import modes
from lab.folder import end, is_alive, only_lab, started_at
from lab.modes import ENJOYED_EPISODES, enjoy, sessions_of, trials_of
from lab.results import report_experiment, report_trial
from lab.session import Curve, Session, SessionRecord, read_record, spread, write_record
from lab.spec import find_experiment, read_experiments
from lab.upkeep import remove
from reporting.model_files import steps_in
from run_lab import fits
from tests.lab.left import leave_session, program_that_ends
from tests.processes import ROOT
from wiring.checks import check_divided, check_serial
from wiring.starting.run_plan import check_parts

SPEC = """# Mnih et al. 2015
agent: dqn
T-max: 5000
learn-start: 1000
seed: 7
meta: {sessions: 2, games: [pong, "probe:catch"]}
"""


def planned(folder: Path, mode: str) -> list[Session]:
    spec = folder / "some.yaml"
    spec.write_text(SPEC)
    return sessions_of(find_experiment(spec, "some"), mode, folder / "lab")


def test_modes_plan_trials_and_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    train, dev, games = (planned(tmp_path, mode) for mode in ("train", "dev", "benchmark"))
    assert [(session.folder.parent.name, session.changes) for session in train] == [
        ("trial_0", {"seed": 7}),
        ("trial_0", {"seed": 8}),
    ]
    assert train[1].folder == tmp_path / "lab" / "some" / "train" / "trial_0" / "session_1"
    assert len(dev) == 1 and dev[0].changes["T_max"] == 2000 and dev[0].changes["serial"]
    assert [(s.folder.parent.name, s.changes["game"]) for s in games[::2]] == [
        ("pong", "pong"),
        ("probe_catch", "probe:catch"),
    ]
    monkeypatch.setenv("DISPLAY", ":0")
    assert planned(tmp_path, "dev")[0].changes["render"]


@pytest.mark.parametrize("name", ["through_all", "atari_100k"])
def test_dev_is_one_process_of_any_experiment(name: str) -> None:
    """However many actors, shards and learners it has otherwise; several games have an actor each."""
    for experiment in read_experiments(ROOT / "specs" / "lab" / f"{name}.yaml").values():
        (changes,) = trials_of(experiment, "dev").values()
        args = experiment.args(**changes)
        assert args.serial == (len(args.games) == 1)
        check_parts(args)
        check_divided(args)
        check_serial(args)


def test_what_would_not_start_is_not_ready(tmp_path: Path) -> None:
    spec = tmp_path / "some.yaml"
    spec.write_text("# Mnih et al. 2015\nagent: dqn\ngame: probe:catch\nserial: true\nnb-actor: 2\n")
    with pytest.raises(UserError, match="--serial has one actor"):
        fits(find_experiment(spec, "some"))


def test_a_session_has_a_plain_spec_and_refuses_another_ones_folder(tmp_path: Path) -> None:
    first, second = planned(tmp_path, "train")
    first.prepare()
    first.prepare()  # the same again
    title, *lines = first.spec.read_text().splitlines()
    first.spec.write_text("\n".join(["# of another name", *reversed(lines)]))
    first.prepare()
    assert first.spec.read_text().startswith("# some trial_0 session 0, of some.yaml\nagent: dqn\n")
    other = Session(second.experiment, 0, {"lr": 0.5}, first.folder)
    root = first.folder.parents[3]
    with pytest.raises(UserError, match=f"holds a session of another spec: .* reset some --results {root}`"):
        other.prepare()


def test_records_and_snapshots(tmp_path: Path) -> None:
    assert read_record(tmp_path) == SessionRecord() and steps_in(tmp_path) == 0
    record = SessionRecord("finished", seconds=1.5)
    write_record(tmp_path, record)
    (tmp_path / "last_model_probe_catch_800.pth").touch()
    assert read_record(tmp_path) == record and record.is_done and steps_in(tmp_path) == 800


def test_enjoy_plays_the_best_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of those that left a snapshot."""
    experiment = planned(tmp_path, "train")[0].experiment
    for number, (score, steps) in enumerate(((1.0, 10), (3.0, 10), (2.0, 10), (4.0, 0))):
        folder = tmp_path / f"lab/some/train/trial_0/session_{number}"
        leave_session(folder, {"pong": score}, steps=steps)
        Session(experiment, number, {}, folder).prepare()
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(modes, "EVALUATE", program_that_ends(tmp_path / "some.py", 7))
    assert enjoy(experiment, tmp_path / "lab") == 7
    best = tmp_path / "lab/some/train/trial_0/session_1"
    words = f"--model {best / 'last_model_some_10.pth'} --evaluation-episodes {ENJOYED_EPISODES} "
    assert capfd.readouterr().out.startswith(words)


def test_a_process_is_known_by_number_and_start() -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = started_at(sleeper.pid)
    assert is_alive(sleeper.pid, began) and not is_alive(sleeper.pid, began + 1)
    assert not end(sleeper.pid, began + 1, 10)  # another process of that number is left alone
    assert sleeper.poll() is None
    assert end(sleeper.pid, began, 30)
    assert sleeper.wait(30) != 0 and not is_alive(sleeper.pid, began) and not is_alive(0, 0)


def test_a_process_that_does_not_listen_is_killed_also_where_it_leads_no_group() -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", deaf], stdin=pipe, stdout=pipe) as sleeper:
        assert sleeper.stdout is not None and sleeper.stdout.readline() == b"\n"
        assert os.getpgid(sleeper.pid) != sleeper.pid
        assert end(sleeper.pid, started_at(sleeper.pid), 0.1)
        assert sleeper.wait(30) == -signal.SIGKILL


def test_one_lab_at_a_time_and_nothing_is_removed_meanwhile(tmp_path: Path) -> None:
    with only_lab(tmp_path):
        with pytest.raises(UserError, match=f"Another lab runs in {tmp_path}"), only_lab(tmp_path):
            pass
        with pytest.raises(UserError, match="stop it first"):
            remove([tmp_path], tmp_path)
    assert started_at(os.getpid()) > 0


def test_spread_is_the_mean_over_sessions_where_all_have_scores() -> None:
    curves = [
        Curve(np.array([0.0, 100.0]), np.array([0.0, 10.0])),
        Curve(np.array([50.0, 200.0]), np.array([9.0, 9.0])),
    ]
    steps, mean, std = spread(curves)
    assert (steps[0], steps[-1]) == (50, 100)
    np.testing.assert_allclose(mean, (steps / 10 + 9) / 2)
    np.testing.assert_allclose(std, np.abs(steps / 10 - 9) / 2)
    assert len(spread([]).steps) == 0


def test_what_has_no_scores_is_reported_all_the_same(tmp_path: Path) -> None:
    trial = tmp_path / "some" / "train" / "trial_0"
    write_record(trial / "session_0", SessionRecord("failed", "no luck"))
    report_trial(trial)
    report_experiment(trial.parent)
    row = (trial.parent / "experiment.csv").read_text().splitlines()[1]
    assert row.startswith("trial_0,,1,0,1,") and "nan" not in row
    assert (trial / "trial.png").read_bytes().startswith(b"\x89PNG")
