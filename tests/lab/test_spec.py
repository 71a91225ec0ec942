"""Spec files of the lab: what they mean, and one sentence for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from args import UserError, read_args
from lab.modes import read_schedule
from lab.spec import find_experiment, read_experiments
from run_lab import fits, main
from tests.processes import run, start

ROOT = Path(__file__).parents[2]
LINE = "# Mnih et al. 2015, no deviations\n"
SEVERAL = LINE + "lr: 0.5\nmeta: {sessions: 2}\nexperiments:\n  one: {agent: dqn, meta: {games: [pong]}}\n"


def written(folder: Path, text: str, name: str = "some.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_of_flags_is_one_experiment(tmp_path: Path) -> None:
    path = written(tmp_path, LINE + "agent: dqn\nlearn-start: 100\nmeta: {sessions: 3, budget-minutes: 5}\n")
    experiment = read_experiments(path)["some"]
    assert experiment.flags == {"agent": "dqn", "learn_start": 100}
    assert (experiment.meta.sessions, experiment.meta.budget_minutes) == (3, 5.0)
    assert experiment.args(seed=7).seed == 7
    assert read_args(["--spec", str(path)]).agent == "dqn"  # the same file serves one run


def test_what_stands_beside_experiments_is_for_all(tmp_path: Path) -> None:
    experiment = find_experiment(written(tmp_path, SEVERAL + "  two: {agent: a2c, lr: 0.1}\n"), "one")
    assert experiment.flags == {"lr": 0.5, "agent": "dqn"}
    assert experiment.meta.sessions == 2 and experiment.meta.games == ("pong",)
    assert find_experiment(tmp_path / "some.yaml", "two").flags["lr"] == 0.1


def test_keys_with_a_dot_only_hold_anchors(tmp_path: Path) -> None:
    text = ".quick: &quick {lr: 0.25}\nexperiments: {one: {<<: *quick, agent: dqn}}\n"
    assert find_experiment(written(tmp_path, LINE + text), "one").flags == {"lr": 0.25, "agent": "dqn"}


def test_an_experiment_begins_from_the_spec_it_names(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    written(tmp_path, LINE + "agent: dqn\nlr: 0.5\nbatch-size: 8\n", "base.yaml")
    path = written(tmp_path, LINE + "experiments: {one: {spec: ../base.yaml, lr: 0.1}}", "below/lab.yaml")
    assert find_experiment(path, "one").flags == {"agent": "dqn", "lr": 0.1, "batch_size": 8}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("agent: dqn\n", "the first line must be a comment that names the paper and the deviations"),
        (LINE + "[1, 2]", "must hold `name: value` lines"),
        (LINE + "a: [", "cannot be read at line 2, column 5: while parsing"),
        (LINE + "lr: 1\nlr: 2", "lr stands here and in line 2: keep one of them"),
        (LINE + "experiments: []", "experiments must be a mapping of names to flags"),
        (LINE + "experiments: {one: 3}", "experiment one: it must hold `name: value` lines"),
        (LINE + "experiments: {'a b': {lr: 1}}", "experiment a b: it names a folder"),
        (LINE + "experiments: {..: {lr: 1}}", "experiment ..: it names a folder: use letters"),
        (LINE + "experiments: {.: {lr: 1}}", "experiment .: it names a folder"),
        (LINE + "experiments: {-x: {lr: 1}}", "experiment -x: it names a folder"),
        (LINE + "experiments: {lab.lock: {lr: 1}}", "lab.lock is reserved"),
        (LINE + "experiments: {runs: {lr: 1}}", "runs is reserved"),
        (LINE + "learn-strat: 1", "experiment some: names an unknown parameter learn-strat; did you mean learn-start?"),  # noqa: E501
        (LINE + "lr: fast", "experiment some: lr got 'fast': input should be a valid number"),
        (LINE + "lr: -1", "experiment some: lr got -1: input should be greater than 0"),
        (LINE + "V-min: 20", "--V-min 20.0 must be below --V-max 10.0"),
        (LINE + "run: mine", "run is set by the lab; remove it"),
        (LINE + "meta: 3", "meta must hold sessions, budget-minutes, extra, recipe, games"),
        (LINE + "meta: {sesions: 3}", "meta has no sesions; it may hold sessions, budget-minutes, extra"),
        (LINE + "meta: {sessions: 0}", "meta.sessions got 0: input should be greater than or equal to 1"),
        (LINE + "meta: {sessions: many}", "meta.sessions got 'many': input should be a valid integer"),
        (LINE + "meta: {sessions: true}", "meta.sessions got True: input should be a valid integer"),
        (LINE + "meta: {sessions: 1e1}", "meta.sessions got '1e1': input should be .* integer: write 10"),
        (LINE + "meta: {budget-minutes: true}", "meta.budget-minutes got True: input should be a number"),
        (LINE + "meta: {extra: 1}", "meta.extra got 1: input should be a valid boolean"),
        (LINE + "meta: {games: pong}", r"meta.games got 'pong': input should be a list, as \[pong\]"),
        (LINE + "experiments: {one: {spec: none.yaml}}", "some.yaml, experiment one: .*none.yaml cannot be"),
        (LINE + "spec: [a]", r"some: spec got \['a'\]: it should be the path of one file of flags"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        read_experiments(written(tmp_path, text))
    assert "some.yaml" in str(caught.value) or "none.yaml" in str(caught.value)


def test_a_mistake_in_the_file_begun_from_names_both_files(tmp_path: Path) -> None:
    base = written(tmp_path, LINE + "lr: fast\n", "base.yaml")
    other = written(tmp_path, LINE + "run: mine\n", "other.yaml")
    for own, sentence in (
        ("{spec: base.yaml}", f"experiment one: lr in {base} got 'fast'"),
        ("{spec: other.yaml}", f"experiment one: run in {other} is set by the lab"),
        ("{spec: lab.yaml}", f"experiment one: The spec {tmp_path / 'lab.yaml'} holds several experiments"),
    ):
        path = written(tmp_path, f"{LINE}experiments: {{one: {own}}}", "lab.yaml")
        with pytest.raises(UserError, match=f"{path}, {sentence}"):
            read_experiments(path)


def test_an_editors_mark_may_stand_before_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(LINE + "lr: 0.5\n", encoding="utf-8-sig")
    assert find_experiment(path, "some").flags == {"lr": 0.5}
    schedule = tmp_path / "schedule.json"
    schedule.write_text(json.dumps({str(path): {"some": "train"}}), encoding="utf-8-sig")
    assert [task.experiment.name for task in read_schedule(schedule)] == ["some"]


def test_an_unknown_experiment_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no experiment three: choose one of one"):
        find_experiment(written(tmp_path, SEVERAL), "three")


def test_one_run_cannot_be_several(tmp_path: Path) -> None:
    path = written(tmp_path, SEVERAL)
    with pytest.raises(UserError, match=f"several experiments: run one with `python run_lab.py run {path}"):
        read_args(["--spec", str(path)])


@pytest.mark.parametrize("path", sorted((ROOT / "specs" / "lab").glob("*.yaml")), ids=lambda path: path.name)
def test_every_shipped_file_is_read(path: Path) -> None:
    assert read_experiments(path)


def test_check_goes_on_after_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence for each experiment, or for a file that cannot be read."""
    game = "game: probe:catch"
    experiments = f"{{bad: {{lr: fast}}, other: {{game: probe:nope}}, good: {{agent: dqn, {game}}}}}"
    mixed = written(tmp_path, f"{LINE}experiments: {experiments}", "mixed.yaml")
    broken = written(tmp_path, LINE + "lr: [", "broken.yaml")
    good = written(tmp_path, f"{LINE}agent: dqn\n{game}\n", "good.yaml")
    assert main(["check", *map(str, (mixed, broken, good))]) == 2
    said = capsys.readouterr()
    assert said.out == f"{mixed}, experiment good: ready.\n{good}, experiment good: ready.\n"
    first, second, third = said.err.splitlines()
    assert first.startswith(f"error: {mixed}, experiment bad: lr got 'fast'")
    assert second.startswith(f"error: {mixed}, experiment other: No environment is called 'probe:nope'")
    assert third.startswith(f"error: The spec {broken} cannot be read at line 2, column 6: ")
    assert main(["check", str(good)]) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("chekc", "argument COMMAND: invalid choice: 'chekc'"), ("run some.yaml", "SPEC_NAME, MODE")],
)
def test_a_wrong_command_is_one_sentence(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    (said,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and said.startswith("error: ") and sentence in said


def test_check_counts_seats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, LINE + "agent: dqn\ngame: pettingzoo:rps_v2\nenvs-per-actor: 3\n")
    assert main(["check", str(path)]) == 2
    assert "--envs-per-actor must be a multiple of 2, not 3." in capsys.readouterr().err


def test_a_game_is_called_as_tables_call_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else its scores would be beside no standard."""
    path = written(tmp_path, LINE + "agent: dqn\ngame: ALE/Pong-v5\n")
    assert main(["check", str(path)]) == 2
    assert "tables of scores know ALE/Pong-v5 as pong: call it so here." in capsys.readouterr().err


def test_a_game_by_turns_has_no_scores_for_a_benchmark(tmp_path: Path) -> None:
    path = written(tmp_path, LINE + "agent: dqn\ngame: pettingzoo:tictactoe_v3\ndiscount: -1\n")
    (experiment,) = read_experiments(path).values()
    fits(experiment)
    with pytest.raises(UserError, match="pettingzoo:tictactoe_v3 is played by turns, for matches"):
        fits(experiment, scored=True)


def test_check_as_a_command(tmp_path: Path) -> None:
    """Also what only agents and environments know: exit code 2, and nothing but the sentence."""
    good = ROOT / "specs" / "classic" / "catch_a2c.yaml"
    assert "experiment catch_a2c: ready." in run("run_lab.py", "check", good, log=tmp_path / "good.log")
    bad = written(tmp_path, LINE + "agent: dqn\ngame: Pendulum-v1\n")
    process = start("run_lab.py", "check", bad, log=tmp_path / "bad.log")
    assert process.wait(60) == 2
    expected = f"error: {bad}, experiment some: This agent needs discrete actions, and this environment's"
    assert (tmp_path / "bad.log").read_text().startswith(expected)
