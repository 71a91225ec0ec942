"""Parts of a search that need no Ray cluster."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from ray.tune.schedulers import ASHAScheduler

from args import UserError
from lab.search.engine import check_search
from lab.search.ledger import Ledger
from lab.search.proposals import Proposals, is_stopped_early, planned
from lab.search.space import Asha, Search
from lab.search.trial import Job, Progress, TrialPlayer, TrialRecord, as_of, measures, read_trials
from lab.session import Curve, SessionRecord, SessionResult, write_record
from lab.spec import find_experiment


def space(method: str = "optuna", trials: int = 4, **others: object) -> Search:
    flags = {"lr": {"loguniform": [0.001, 0.1]}, "baseline": {"choice": [True, False]}}
    document = {"flags": flags, "method": method, "trials": trials, "metric": "score", **others}
    return Search.model_validate(document)


def session(steps: list[float], scores: list[float]) -> SessionResult:
    curve = Curve(np.array(steps), np.array(scores))
    game, record = "probe:catch", SessionRecord("running")
    return SessionResult(Path("session_0"), record, game, 0, "", curve, {game: curve})


def test_a_trial_is_measured_as_it_stood_at_a_number_of_steps() -> None:
    results = [session([100, 900], [1, 3]), session([50, 700], [5, 7])]
    at = {steps: measures(as_of(results, steps, 1000)) for steps in (50, 100, 950, 1000, 1050, 2000)}
    assert "score" not in at[50]
    assert [at[steps]["score"] for steps in (100, 950, 1000, 1050, 2000)] == [1, 3, 3, 4, 5]
    assert at[2000]["fitness"] == 0  # fewer episodes than a window
    assert measures([]) == {}


def test_the_ledger_keeps_what_was_reported_across_starts(tmp_path: Path) -> None:
    lines: list[str] = []
    ledger = Ledger("some", tmp_path, space(), lines.append, lambda: None)
    ledger.begin(0, {"lr": 0.012345678, "baseline": True}, "here")
    assert ledger.report(0, Progress(100, {"score": 0.5}, 0.1, "abc", False))
    assert not ledger.report(0, Progress(100, {"score": 0.9}, 0.2, "abc", False))  # a heartbeat
    ledger.end(0, "stopped early")
    ledger.begin(1, {"lr": 0.1, "baseline": False}, "here")
    ledger.report(1, Progress(50, {}, 0.1, "abc", False))  # before the first episode's end
    write_record(tmp_path / "trial_1" / "session_0", SessionRecord("failed", "no luck."))
    ledger.end(1, "failed")
    ledger.begin(2, {"lr": 0.2, "baseline": False})
    ledger.end(2, "stopped")
    ledger.begin(3, {"lr": 0.3, "baseline": False})
    ledger.report(3, Progress(100, {"score": 0.75}, 0.1, "abc", False))
    ledger.end(3, "finished")
    assert lines[0] == "some trial_0: lr 0.01235, baseline True"
    assert lines[1] == "some trial_0: stopped early, score 0.5. 1 done, best: trial_0 with 0.5."
    assert lines[3] == "some trial_1: failed (no luck). 1 done, best: trial_0 with 0.5."
    assert lines[7] == "some trial_3: finished, score 0.75. 2 done, best: trial_3 with 0.75."
    again = Ledger("some", tmp_path, space(), lines.append, lambda: None)
    assert again.records == ledger.records == read_trials(tmp_path)
    states = [record.state for record in again.records.values()]
    assert states == ["stopped early", "failed", "stopped", "finished"]
    assert again.records[0].reports == ((100, 0.5),) and list(again.done) == [0, 3]
    again.draw()
    header, first, second, *_ = (tmp_path / "experiment.csv").read_text().splitlines()
    assert header.startswith("trial,state,lr,baseline,agent_steps,minutes,mean_score_points,strength,")
    assert first.startswith("trial_0,stopped early,0.012345678,True,100,0.1,0.5,")
    assert second.endswith(",abc,here,no luck")
    assert (tmp_path / "experiment.png").read_bytes().startswith(b"\x89PNG")


def test_asha_compares_with_trials_of_an_earlier_start() -> None:
    asha = Asha.model_validate({"grace-steps": 10, "reduction": 2})
    before = {n: TrialRecord({}, "finished", reports=((10, 1.0), (20, float(n)))) for n in (3, 4, 5)}
    new = {0: TrialRecord({}, "running", agent_steps=20, reports=((10, 1.0), (20, 2.0)))}
    assert is_stopped_early(asha, 0, {**before, **new})
    assert not is_stopped_early(asha, 0, new)  # the first at a rung continues


@pytest.mark.parametrize(("reduction", "seed"), [(2, 0), (3, 1), (4, 2)])
def test_asha_decides_as_ray_tunes_does(reduction: int, seed: int) -> None:
    """Trials of random values that report by turns; most reports are at no rung."""
    generator = np.random.default_rng(seed)
    asha = Asha.model_validate({"grace-steps": 5, "reduction": reduction})
    known = ASHAScheduler("steps", "value", "max", 10_000, 5, reduction)
    records = {number: TrialRecord({}, "running") for number in range(12)}
    trials = {number: SimpleNamespace(trial_id=str(number)) for number in records}
    for trial in trials.values():
        known.on_trial_add(None, trial)
    running, stopped = [*records], 0
    for _ in range(600):
        number = int(generator.choice(running))
        steps, value = records[number].agent_steps + 5, float(generator.normal())
        reports = (*records[number].reports, (steps, value))
        records[number] = replace(records[number], agent_steps=steps, reports=reports)
        expected = known.on_trial_result(None, trials[number], {"steps": steps, "value": value})
        assert is_stopped_early(asha, number, records) == (expected == "STOP")
        if expected == "STOP" and len(running) > 1:
            running.remove(number)
            stopped += 1
    assert stopped > 3


def test_optuna_resumes_where_it_stood() -> None:
    """Unfinished trials keep numbers and flags; new ones differ from all before."""
    first = Proposals(space(), range(4), {})
    begun = [first.next() for _ in range(3)]
    assert [number for number, _ in begun] == [0, 1, 2]
    states = ("finished", "stopped", "stopped early")
    records = {
        number: TrialRecord(json.loads(json.dumps(flags)), state, measures={"score": 0.5})
        for (number, flags), state in zip(begun, states, strict=True)
    }
    again = Proposals(space(trials=5), [1, 3, 4], records)
    resumed, *new = (again.next() for _ in range(3))
    assert resumed == begun[1]
    assert [number for number, _ in new] == [3, 4]
    rates = [flags["lr"] for _, flags in (*begun, *new)]
    assert len(set(rates)) == 5 and all(0.001 <= float(rate or 0) <= 0.1 for rate in rates)
    again.learn(1, replace(records[1], state="finished"))
    again.learn(3, TrialRecord({}, "failed", measures={"score": 9.0}))
    again.learn(4, TrialRecord({}, "finished"))
    states_known = [trial.state.name for trial in again._study.get_trials()]
    assert sorted(states_known) == ["COMPLETE", "COMPLETE", "COMPLETE", "FAIL", "FAIL"]
    assert not again


def test_optuna_proposes_by_factors_and_near_the_best() -> None:
    """The first ones are even in the logarithm, and later ones lie where scores were high."""
    proposals = Proposals(space(trials=60), range(60), {})
    rates = []
    for _ in range(60):
        number, flags = proposals.next()
        rates.append(float(str(flags["lr"])))
        proposals.learn(number, TrialRecord(flags, "finished", measures={"score": rates[-1]}))
    assert 0.005 < np.median(rates[:10]) < 0.02
    assert np.median(rates[30:]) > 0.05


def test_a_report_waits_for_the_end_of_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes of a vector of environments may end beyond the last step, and others still be due there."""
    monkeypatch.chdir(tmp_path)  # where a player goes
    path = tmp_path / "some.yaml"
    path.write_text("# none\ngame: pong\nT-max: 1000\nlearn-start: 100\n")
    player = TrialPlayer(Job(find_experiment(path, "some"), tmp_path, tmp_path, 1000, 500), 0, {})
    for reported, last, state, is_due in (
        (0, 499, "running", False), (0, 500, "running", True),
        (500, 1007, "running", False), (500, 1007, "finished", True),
    ):  # fmt: skip
        player._reported = reported
        player._results = [session([100, last], [1, 3])._replace(record=SessionRecord(state))]
        assert player._is_due() == is_due


def test_planned_trials_keep_their_numbers() -> None:
    search = space("random", trials=5)
    proposals = Proposals(search, [1, 4], {})
    assert [proposals.next(), proposals.next()] == [(n, planned(search)[n]) for n in (1, 4)]
    proposals.learn(1, TrialRecord({}, "finished"))
    assert not proposals


def test_without_its_extra_a_sentence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "some.yaml"
    path.write_text("# none\ngame: pong\n")
    with pytest.raises(UserError, match="experiment some: mode search needs a block `search`"):
        check_search(find_experiment(path, "some"))
    path.write_text("# none\ngame: pong\nsearch: {trials: 2, flags: {lr: {choice: [1]}}}\n")
    check_search(find_experiment(path, "some"))
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if "-packages" not in entry])
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UserError, match="mode search needs ray, which is not installed: `EXTRAS=search bash"):
        check_search(find_experiment(path, "some"))
