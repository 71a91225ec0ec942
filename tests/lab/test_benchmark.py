"""The command benchmark: several sessions at a time, one table, what was not run says so."""

from __future__ import annotations

import csv
import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from args import UserError
from lab.benchmark import command
from lab.benchmark.command import EPISODES, Benchmark, _progress, chosen, over_games, write_table
from lab.benchmark.table import OverAll, Row, markdown
from lab.commands import benchmark
from lab.runner import Runner
from lab.session import SessionRecord
from lab.spec import read_experiments
from reporting.measures.fitness import standard_of
from run_lab import main
from supervision.process import Stop
from tests.lab.left import leave_session, program_that_ends
from tests.processes import run

SPEC = """# A2C of Mnih et al. 2016 on Catch, tiny: for this test alone
.tiny: &tiny {agent: a2c, learn-start: 32, rollout-length: 5, envs-per-actor: 8, head-sizes: "16", T-max: 400}
game: probe:catch
serial: true
sequential: true
threads: 1
log-interval: 100
experiments:
  first: {<<: *tiny}
  second: {<<: *tiny, entropy-coeff: 0.1, meta: {sessions: 2}}
  third: {<<: *tiny, agent: reinforce, meta: {extra: true}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SPEC)
    return path


@pytest.mark.slow
def test_a_benchmark_plays_what_is_due_and_says_what_is_not(spec: Path, tmp_path: Path) -> None:
    folder = tmp_path / "benchmark"
    words = "run_lab.py", "benchmark", spec, "--results", folder
    said = run(*words, "--sessions", 1, log=tmp_path / "first.log", timeout_s=300)
    assert "first trial_0 session 0: finished." in said and "third" not in said
    with (folder / "benchmark.csv").open() as file:
        rows = {row["experiment"]: row for row in csv.DictReader(file)}
    assert [row["state"] for row in rows.values()] == ["done", "1 of 2", "not run"]
    assert -1 <= float(rows["first"]["mean_score_points"]) <= 1 and len(rows["first"]["commit"]) >= 7
    assert rows["third"]["mean_score_points"] == rows["third"]["commit"] == ""
    assert "| reinforce | not run | 0.4K |" in (folder / "README.md").read_text()
    evaluation = json.loads(
        (folder / "runs/first/train/trial_0/session_0/evaluation_probe_catch.json").read_text()
    )
    assert evaluation["episodes"] == EPISODES and not evaluation["settings"]["eval_noise"]
    assert (folder / "probe_catch.png").read_bytes().startswith(b"\x89PNG")
    assert "Plotly.newPlot" in (folder / "benchmark.html").read_text()
    again = run(*words, "--only", "second", log=tmp_path / "again.log", timeout_s=300)
    assert "second trial_0 session 0: finished before." in again and "first" not in again
    assert "second trial_0 session 1: finished." in again


def test_agents_and_the_games_that_each_plays_are_rows_of_one_table(tmp_path: Path) -> None:
    """Alone and together: of the files that sessions leave."""
    spec, runs = tmp_path / "some.yaml", tmp_path / "runs"
    together = "CartPole-v1,probe:catch"
    spec.write_text(
        "# test\nexperiments:\n"
        f'  each: {{agent: dqn, T-max: 100000, meta: {{games: [CartPole-v1, "{together}"]}}}}\n'
        '  ball: {agent: iqn, game: "probe:catch", T-max: 100000}\n'
    )
    mode = runs / "each" / "benchmark"
    leave_session(mode / "CartPole-v1" / "session_0", {"CartPole-v1": 400.0})
    leave_session(mode / "CartPole-v1_probe_catch" / "session_0", {"CartPole-v1": 300.0, "probe:catch": 0.5})
    write_table(tmp_path, [*read_experiments(spec).values()], runs)
    with (tmp_path / "benchmark.csv").open() as file:
        rows = {(row["experiment"], row["agent"], row["game"]): row for row in csv.DictReader(file)}
    both = "dqn, 2 games at once"
    scores = {key: (row["mean_score_points"], row["mean_training_score_points"]) for key, row in rows.items()}
    assert scores == {
        ("each", "dqn", "CartPole-v1"): ("400.0", "399.0"),
        ("each", both, "CartPole-v1"): ("300.0", "299.0"),
        ("each", both, "probe:catch"): ("0.5", "-0.5"),
        ("ball", "iqn", "probe:catch"): ("", ""),
    }
    assert rows["each", both, "probe:catch"]["state"] == "done"
    with (tmp_path / "sessions.csv").open() as file:
        assert [row["game"] for row in csv.DictReader(file)] == ["CartPole-v1", "CartPole-v1", "probe:catch"]


def test_every_number_of_a_table_is_of_the_sessions_that_are_done(tmp_path: Path) -> None:
    """Of five in each of two games three are, after 2 minutes and 1,000 steps each."""
    spec, runs = tmp_path / "some.yaml", tmp_path / "runs"
    meta = '{sessions: 5, games: [CartPole-v1, "probe:catch"]}'
    spec.write_text(f"# test\nexperiments: {{many: {{agent: dqn, T-max: 2000, meta: {meta}}}}}\n")
    done = SessionRecord("finished", seconds=120)
    records = done, done, done, SessionRecord("failed", seconds=999), SessionRecord("stopped", seconds=999)
    scores = {"CartPole-v1": (100.0, 200.0, 300.0), "probe:catch": (1.0, 2.0, 4.0)}
    for game, known in scores.items():
        trial = runs / "many" / "benchmark" / game.replace(":", "_")
        for number, (score, record) in enumerate(zip((*known, 999.0, 999.0), records, strict=True)):
            leave_session(trial / f"session_{number}", {game: score}, record, steps=1000)
    write_table(tmp_path, [*read_experiments(spec).values()], runs)
    with (tmp_path / "benchmark.csv").open() as file:
        row = {row["game"]: row for row in csv.DictReader(file)}["probe:catch"]
    counts = "sessions_done", "sessions_failed", "planned_steps", "agent_steps", "minutes"
    assert [row[name] for name in counts] == ["3", "1", "2000", "3000", "6.0"]
    ends = "mean", "std", "low", "high", "mean_training"
    points = [float(row[f"{name}_score_points"]) for name in ends]
    assert points == pytest.approx([7 / 3, np.std([1, 2, 4]), 1, 4, 4 / 3])
    line = (
        "| dqn | 3 of 5, 1 failed, 1 begun | 2K | 2.0 | 2.333 ± 1.247 | 1.000 to 4.000 | 1.00, 2.00, 4.00 |"
    )
    assert line in (tmp_path / "README.md").read_text()
    standards = {game: standard for game in scores if (standard := standard_of(game))}
    strengths = np.sort([standards[game].strength(score) for game in scores for score in scores[game]])
    over_all = json.loads((tmp_path / "benchmark.json").read_text())["dqn"]
    assert (over_all["games"], over_all["sessions"]) == ([*scores], 6)
    assert over_all["iqm"] == pytest.approx(strengths[1:-1].mean())
    assert over_all["interval"][0] < over_all["iqm"] < over_all["interval"][1]


def test_all_experiments_of_an_agent_count_over_the_games(tmp_path: Path) -> None:
    """Two in the same game are told apart: seeds that both have would count twice."""
    spec, runs = tmp_path / "some.yaml", tmp_path / "runs"
    games = {"first": "CartPole-v1", "second": "CartPole-v1", "third": "probe:catch", "fourth": "Acrobot-v1"}
    rows = [f"  {name}: {{agent: dqn, game: '{game}', T-max: 2000}}\n" for name, game in games.items()]
    spec.write_text("# test\nexperiments:\n" + "".join(rows))
    for (name, game), score in zip(games.items(), (100.0, 300.0, 1.0, -90.0), strict=True):
        folder = runs / name / "train" / "trial_0" / "session_0"
        leave_session(folder, {game: score}, SessionRecord("finished"), steps=1000)
    write_table(tmp_path, [*read_experiments(spec).values()], runs)
    known = json.loads((tmp_path / "benchmark.json").read_text())
    assert {agent: each["sessions"] for agent, each in known.items()} == {"dqn": 2}
    with (tmp_path / "benchmark.csv").open() as file:
        agents = [row["agent"] for row in csv.DictReader(file)]
    assert agents == ["dqn (first)", "dqn (second)", "dqn", "dqn"]


@pytest.mark.parametrize(("game", "steps"), [("probe:catch", 900), ("CartPole-v1,probe:catch", 0)])
def test_a_session_that_cannot_be_evaluated_is_a_fault(
    game: str, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the evaluation fails, or no snapshot is left for the second game; one beside it is done."""
    spec, folder, games = tmp_path / "some.yaml", tmp_path / "results", game.split(",")
    spec.write_text(f'# test\nexperiments: {{some: {{agent: dqn, game: "{game}", meta: {{sessions: 2}}}}}}\n')
    before, due = (folder / f"runs/some/train/trial_0/session_{number}" for number in range(2))
    for session in (before, due):
        leave_session(session, dict.fromkeys(games, 0.5), steps=steps)
    (due / f"evaluation_{len(games) - 1}.json").unlink()
    monkeypatch.setattr(command, "EVALUATE", program_that_ends(tmp_path / "some.py", 1))
    options = {"file": spec, "results": folder, "fits": lambda *_, **__: None, "side_by_side": 2, "only": []}
    others = dict.fromkeys(("all", "sessions", "table", "detach", "sync_dir"))
    assert benchmark(Namespace(**options, **others)) == 1
    why = "its evaluation failed; evaluation.log says why." if steps else "no snapshot is there to evaluate."
    assert f"{due}: {why}\n" in capsys.readouterr().out
    assert not (before / "evaluation.log").exists()
    if steps:
        words = f"--model {due / 'last_model_some_900.pth'} --evaluation-episodes 100 --eval-noise off "
        assert (due / "evaluation.log").read_text().startswith(words)


def test_a_stop_ends_an_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a policy that stands still for ever, say; the next start begins it anew."""
    spec, endless, stop, said = tmp_path / "some.yaml", tmp_path / "some.py", Stop(), list[str]()
    spec.write_text("# test\nexperiments: {some: {agent: dqn, game: CartPole-v1}}\n")
    leave_session(tmp_path / "runs/some/train/trial_0/session_0", {"CartPole-v1": 300.0}, steps=900)
    (tmp_path / "runs/some/train/trial_0/session_0/evaluation_0.json").unlink()
    endless.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(command, "EVALUATE", endless)

    def say(line: str) -> None:
        said.append(line)
        if "plays 100 episodes" in line:
            stop.set()

    experiments = [*read_experiments(spec).values()]
    assert not Benchmark(experiments, tmp_path, Runner(stop, say), say).play(experiments, 1)
    assert any("its evaluation was stopped: the same command begins it anew." in line for line in said)


def test_games_that_wait_for_their_evaluation_have_no_score(tmp_path: Path) -> None:
    spec, runs = tmp_path / "some.yaml", tmp_path / "runs"
    spec.write_text('# test\nexperiments: {both: {agent: dqn, game: "CartPole-v1,probe:catch"}}\n')
    folder = runs / "both" / "train" / "trial_0" / "session_0"
    leave_session(folder, {"CartPole-v1": 300.0, "probe:catch": 0.5})
    (folder / "evaluation_1.json").unlink()
    write_table(tmp_path, [*read_experiments(spec).values()], runs)
    with (tmp_path / "sessions.csv").open() as file:
        assert [row["evaluation_score_points"] for row in csv.DictReader(file)] == ["300.0", ""]


def test_a_session_without_an_episode_has_a_blank_cell(tmp_path: Path) -> None:
    spec, folder = tmp_path / "some.yaml", tmp_path / "runs/some/train/trial_0/session_0"
    spec.write_text("# test\nexperiments: {some: {agent: dqn, game: CartPole-v1}}\n")
    leave_session(folder, {"CartPole-v1": 300.0})
    (folder / "some.csv").unlink()
    write_table(tmp_path, [*read_experiments(spec).values()], tmp_path / "runs")
    with (tmp_path / "sessions.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["training_score_points"], row["evaluation_score_points"]) == ("", "300.0")


def test_an_abbreviation_is_no_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """--det was taken for --detach by each process that it started."""
    with pytest.raises(SystemExit):
        main(["benchmark", "specs/lab/benchmark.yaml", "--det"])
    assert "unrecognized arguments: --det" in capsys.readouterr().err


def test_a_table_that_cannot_be_written_is_a_fault(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "table").write_text("in the place of the folder")
    assert main(["benchmark", str(spec), "--table", "--results", str(tmp_path / "table")]) == 1


def test_a_table_says_what_it_was_written_of(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And that nothing was played there, as where --results is mistyped."""
    folder = tmp_path / "table"
    words = ["benchmark", str(spec), "--table", "--results", str(folder)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"Nothing was played in {folder}.\nWritten to {folder}, of 0 sessions done: README.md, " in said
    leave_session(folder / "runs/first/train/trial_0/session_0", {"probe:catch": 0.5})
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"Written to {folder}, of 1 session done: README.md, " in said and "Nothing" not in said


def test_sessions_side_by_side_are_one_or_more(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["benchmark", str(spec), "--side-by-side", "0"])
    assert ended.value.code == 2 and "0 is no whole number of 1 or more." in capsys.readouterr().err


def test_games_played_at_once_are_one_session(tmp_path: Path) -> None:
    spec = tmp_path / "some.yaml"
    spec.write_text(
        '# test\nexperiments: {both: {agent: dqn, game: "CartPole-v1,probe:catch", meta: {sessions: 3}}}\n'
    )
    write_table(tmp_path, [*read_experiments(spec).values()], tmp_path / "runs")
    assert "0 of 3" in (tmp_path / "benchmark.html").read_text()


def test_rows_are_chosen_by_name(spec: Path) -> None:
    rows = [*read_experiments(spec).values()]
    assert [row.name for row in chosen(rows, [], every=False)] == ["first", "second"]
    assert [row.name for row in chosen(rows, [], every=True)] == ["first", "second", "third"]
    assert [row.name for row in chosen(rows, ["third"], every=False)] == ["third"]
    with pytest.raises(UserError, match="holds no experiment fourth: choose among first, second, third"):
        chosen(rows, ["fourth"], every=False)


def test_an_interval_needs_three_sessions_of_every_game() -> None:
    three, two = np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.4])
    assert over_games({"pong": three, "qbert": two}).interval is None
    known = over_games({"pong": three, "qbert": three})
    assert known.interval is not None and known.interval[0] < known.iqm < known.interval[1]
    assert (known.games, known.sessions) == (("pong", "qbert"), 6)


def test_a_row_says_what_became_of_its_sessions() -> None:
    row = Row("some", "pong", "a2c", 3, 1, 1, 1, False, 10, 10, 1.0, "", (), (1.0,), (), None, ())
    assert row.state == "1 of 3, 1 failed, 1 begun"
    assert replace(row, scores=()).state == "1 of 3, 1 not evaluated, 1 failed, 1 begun"
    whole = replace(row, done=3, failed=0, open=0, scores=(1.0, 2.0, 3.0))
    assert whole.state == "done"
    assert replace(whole, scores=(1.0, 2.0)).state == "done, 1 not evaluated"
    assert replace(whole, sessions=2).state == "done"  # fewer are planned than before
    assert _progress([replace(row, done=3, sessions=2), row]).value == "3 of 5"
    assert replace(row, done=0, failed=0, open=0).state == "not run"


def test_a_table_without_strengths_has_no_table_over_the_games() -> None:
    """As of games that have no standard."""
    row = Row("some", "Mine-v0", "a2c", 3, 3, 0, 0, False, 10, 30, 1.0, "", (), (1.0,), (), None, ())
    assert "Over the games" not in markdown([row], {})
    known = OverAll(("pong", "qbert"), 6, 0.5, (0.4, 0.6))
    assert "| a2c | pong, qbert | 6 | 0.50 | 0.40 to 0.60 |" in markdown([row], {"a2c": known})


def test_small_scores_have_digits_that_tell_them_apart() -> None:
    row = Row("some", "Mine-v0", "a2c", 2, 2, 0, 0, False, 10, 30, 1.0, "", (), (0.92, 0.95), (), None, ())
    assert "| 0.935 ± 0.015 |  | 0.92, 0.95 |" in markdown([row], {})
    assert "| 92.0 |  | 92 |" in markdown([replace(row, scores=(92.0,))], {}), "one has no spread"
    assert "| 93.5 ± 1.5 |  | 92, 95 |" in markdown([replace(row, scores=(92.0, 95.0))], {})
