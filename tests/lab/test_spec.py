"""Spec files of the lab: what they mean, and one sentence for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from args import UserError, read_args
from lab.spec import find_experiment, read_experiments
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
        (LINE + "a: [", "cannot be read: while parsing"),
        (LINE + "experiments: []", "experiments must be a mapping of names to flags"),
        (LINE + "experiments: {one: 3}", "experiment one: it must hold `name: value` lines"),
        (LINE + "experiments: {'a b': {lr: 1}}", "experiment a b: a folder will be called so"),
        (LINE + "learn-strat: 1", "experiment some: names an unknown parameter learn_strat; did you mean learn-start?"),  # noqa: E501
        (LINE + "lr: fast", "experiment some: --lr got 'fast': input should be a valid number"),
        (LINE + "lr: -1", "--lr got -1: input should be greater than 0"),
        (LINE + "V-min: 20", "--V-min 20.0 must be below --V-max 10.0"),
        (LINE + "run: mine", "run is the lab's own to give; leave it out"),
        (LINE + "meta: 3", "meta must hold sessions, budget-minutes, extra, games"),
        (LINE + "meta: {sesions: 3}", "meta has no sesions; it may hold sessions, budget-minutes, extra"),
        (LINE + "meta: {sessions: 0}", "meta.sessions got 0: input should be greater than or equal to 1"),
        (LINE + "meta: {sessions: many}", "meta.sessions got 'many': input should be a valid integer"),
        (LINE + "experiments: {one: {spec: none.yaml}}", r"none.yaml cannot be read: .*No such file"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        read_experiments(written(tmp_path, text))
    assert "some.yaml" in str(caught.value) or "none.yaml" in str(caught.value)


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


def test_check_as_a_command(tmp_path: Path) -> None:
    """Also what only agents and environments know: exit code 2, and nothing but the sentence."""
    good = ROOT / "specs" / "classic" / "catch_a2c.yaml"
    assert "experiment catch_a2c: ready." in run("run_lab.py", "check", good, log=tmp_path / "good.log")
    bad = written(tmp_path, LINE + "agent: dqn\ngame: Pendulum-v1\n")
    process = start("run_lab.py", "check", bad, log=tmp_path / "bad.log")
    assert process.wait(60) == 2
    expected = f"error: {bad}, experiment some: This agent needs discrete actions, and this environment's"
    assert (tmp_path / "bad.log").read_text().startswith(expected)
