"""The search block of a spec: what it means, and one sentence for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from args import UserError, read_args
from lab.search.engine import seed_warning
from lab.search.proposals import planned
from lab.search.space import Search
from lab.spec import find_experiment, read_experiments
from run_lab import main

FLAGS = """# Mnih et al. 2015
agent: dqn
game: CartPole-v1
T-max: 5000
memory-capacity: 5000
learn-start: 1000
meta: {sessions: 2}
"""
LR = "lr: {choice: [0.1]}"


def searched(folder: Path, block: str, flags: str = FLAGS) -> Search:
    path = folder / "some.yaml"
    path.write_text(f"{flags}search: {block}\n")
    search = find_experiment(path, "some").search
    assert search is not None
    return search


def test_a_grid_is_every_combination_in_order(tmp_path: Path) -> None:
    search = searched(
        tmp_path, "{method: grid, flags: {lr: {grid: ['1e-3', 0.1]}, batch-size: {grid: [8, 16]}}}"
    )
    assert search.count == 4
    assert planned(search)[:3] == [
        {"lr": 0.001, "batch_size": 8},
        {"lr": 0.001, "batch_size": 16},
        {"lr": 0.1, "batch_size": 8},
    ]
    assert read_args(["--spec", str(tmp_path / "some.yaml")]).T_max == 5000  # the same file serves one run


def test_random_trials_lie_within_bounds_and_more_of_them_begin_alike(tmp_path: Path) -> None:
    flags = (
        "{lr: {loguniform: [0.0001, 0.1]}, discount: {uniform: [0.9, 0.99]},"
        " multi-step: {randint: [1, 3]}, torso: {choice: [auto, mlp]}}"
    )
    trials = planned(searched(tmp_path, f"{{trials: 200, seed: 7, flags: {flags}}}"))
    assert {trial["multi_step"] for trial in trials} == {1, 2, 3}
    assert {trial["torso"] for trial in trials} == {"auto", "mlp"}
    rates = [float(trial["lr"] or 0) for trial in trials]
    assert all(0.0001 <= rate <= 0.1 for rate in rates)
    assert 50 < sum(rate < 0.00316 for rate in rates) < 150  # half the powers of ten, not of the numbers
    assert all(0.9 <= float(trial["discount"] or 0) <= 0.99 for trial in trials)
    assert planned(searched(tmp_path, f"{{trials: 3, seed: 7, flags: {flags}}}")) == trials[:3]
    assert planned(searched(tmp_path, f"{{trials: 3, flags: {flags}}}")) != trials[:3]


def test_what_stands_beside_experiments_is_for_all(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    both = "{one: {search: {trials: 3}}, two: {search: {method: optuna}}}"
    path.write_text(f"{FLAGS}search: {{trials: 2, flags: {{{LR}}}}}\nexperiments: {both}\n")
    one, two = (experiment.search for experiment in read_experiments(path).values())
    assert one and two and (one.trials, one.method, two.trials, two.method) == (3, "random", 2, "optuna")


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ("3", "search must hold flags, method, trials, metric, asha, cpus, gpus, concurrent, seed"),
        ("{}", "search needs flags; it may hold flags, method, trials"),
        ("{trials: 3}", "search needs flags; it may hold"),
        (f"{{flags: {{{LR}}}, trails: 3}}", "search has no trails; it may hold flags, method, trials"),
        (
            f"{{flags: {{{LR}}}, trials: 0}}",
            "search.trials got 0: input should be greater than or equal to 1",
        ),
        (
            f"{{flags: {{{LR}}}, method: best}}",
            "search.method got 'best': input should be 'grid', 'random' or 'optuna'",
        ),
        (f"{{flags: {{{LR}}}}}", "search needs trials, their number, for method random"),
        (
            f"{{flags: {{{LR}}}, method: grid}}",
            "search.flags.lr must be a grid: method grid takes nothing else",
        ),
        (
            "{flags: {lr: {grid: [0.1]}}, trials: 2}",
            "search.flags.lr is a grid, which method random does not take",
        ),
        (
            "{flags: {lr: {grid: [0.1]}}, method: grid, trials: 2}",
            "search.trials does not go with method grid",
        ),
        ("{flags: 3}", "search.flags must name flags, each with one of choice, uniform"),
        ("{flags: {lrr: {choice: [1]}}}", "search.flags names an unknown parameter lrr; did you mean lr"),
        ("{flags: {seed: {choice: [1]}}}", "search.flags.seed is set by the lab; remove it"),
        ("{flags: {lr: 0.1}}", "search.flags.lr must hold one of choice, uniform, loguniform, randint, grid"),
        ("{flags: {lr: {chioce: [1]}}}", "search.flags.lr has no chioce; it may hold choice, uniform"),
        (
            "{flags: {lr: {choice: [1], grid: [2]}}}",
            "search.flags.lr got .*: name exactly one of choice, uniform",
        ),
        (
            "{flags: {lr: {choice: []}}}",
            r"search.flags.lr.choice got \[\]: it should hold at least 1 of them",
        ),
        ("{flags: {lr: {grid: []}}, method: grid}", r"lr.grid got \[\]: it should hold at least 1 of them"),
        ("{flags: {lr: {uniform: [1, 2, 3]}}}", "lr.uniform got .*: it should hold at most 2 of them"),
        ("{flags: {lr: {uniform: [1]}}}", r"lr.uniform.1 got \[1\]: it should hold one more"),
        ("{flags: {lr: {uniform: 1}}}", r"lr.uniform got 1: input should be a list, as \[1\]"),
        ("{flags: {lr: {uniform: [false, true]}}}", "lr.uniform.0 got False: input should be a number"),
        ("{flags: {lr: {choice: [true]}}}", "search.flags.lr got True: input should be a number"),
        ("{flags: {spec: {choice: [a]}}}", "search.flags.spec is set by the lab; remove it"),
        (f"{{flags: {{{LR}}}, trials: true}}", "search.trials got True: input should be a valid integer"),
        (
            "{flags: {lr: {choice: [fast]}}}",
            "search.flags.lr got 'fast': input should be a valid number",
        ),
        ("{flags: {lr: {uniform: [1, 0.1]}}}", "the first bound must be below the second"),
        ("{flags: {lr: {loguniform: [0, 1]}}}", "both bounds must be above 0"),
        (
            "{flags: {lr: {uniform: [-1, 1]}}}",
            "search.flags.lr got -1.0: input should be greater than 0",
        ),
        (
            "{flags: {batch-size: {uniform: [8, 64]}}}",
            "search.flags.batch-size got 29.392: input should be a valid integer",
        ),
        (
            "{flags: {V-min: {grid: [0, 99]}}, method: grid}",
            "--V-min 99.0 must be below --V-max",
        ),
        (f"{{flags: {{{LR}}}, trials: 1, asha: {{}}}}", "search.asha needs grace-steps; it may hold"),
        (
            f"{{flags: {{{LR}}}, trials: 1, asha: {{grace-steps: 10001}}}}",
            "grace-steps 10001 must be at most 10000",
        ),
        (
            f"{{flags: {{{LR}}}, trials: 1, asha: {{grace-steps: 1, max-steps: 10001}}}}",
            "beyond a trial's 10000 steps",
        ),
        (
            "{flags: {T-max: {choice: [2000]}}, trials: 1, asha: {grace-steps: 1}}",
            "does not go with flags.T-max",
        ),
    ],
)
def test_a_mistake_is_one_sentence(block: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        searched(tmp_path, block)
    assert str(caught.value).startswith(f"{tmp_path / 'some.yaml'}, experiment some: ")


def test_fitness_needs_a_standard(tmp_path: Path) -> None:
    flags = FLAGS.replace("CartPole-v1", "MountainCar-v0")
    with pytest.raises(
        UserError, match="search.metric fitness needs a standard, and none is known for MountainCar-v0"
    ):
        searched(tmp_path, f"{{flags: {{{LR}}}, trials: 1}}", flags)
    assert searched(tmp_path, f"{{flags: {{{LR}}}, trials: 1, metric: score}}", flags).metric == "score"
    several = FLAGS.replace("CartPole-v1", '"CartPole-v1,probe:catch"')
    assert searched(tmp_path, f"{{flags: {{{LR}}}, trials: 1}}", several).metric == "fitness"


@pytest.mark.parametrize(
    ("grace", "sessions", "warned"), [(1000, 2, True), (5000, 2, True), (5001, 2, False), (1000, 1, False)]
)
def test_asha_that_sees_one_seed_of_several_says_so(
    grace: int, sessions: int, warned: bool, tmp_path: Path
) -> None:
    flags = FLAGS.replace("sessions: 2", f"sessions: {sessions}")
    searched(tmp_path, f"{{trials: 4, asha: {{grace-steps: {grace}}}, flags: {{{LR}}}}}", flags)
    warning = seed_warning(find_experiment(tmp_path / "some.yaml", "some"))
    assert bool(warning) == warned
    if warned:
        assert "ASHA would stop trials by seed 123 alone" in warning
        assert warning.endswith("above T-max 5000, or play one session.")


def test_check_warns_after_ready(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    searched(tmp_path, f"{{trials: 4, asha: {{grace-steps: 1000}}, flags: {{{LR}}}}}")
    assert main(["check", str(tmp_path / "some.yaml")]) == 0
    ready, warning = capsys.readouterr().out.splitlines()
    assert ready.endswith("ready.") and "ASHA would stop trials by seed" in warning
    searched(tmp_path, f"{{trials: 4, flags: {{{LR}}}}}")
    assert main(["check", str(tmp_path / "some.yaml")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ("{method: grid, flags: {agent: {grid: [dqn, naf]}}}", "with agent naf: "),
        ("{trials: 1, flags: {agent: {choice: [dqn, naf]}}}", "with agent naf: "),
        ("{method: grid, flags: {game: {grid: [CartPole-v1, nosuch]}}}", "with game nosuch: "),
        (
            "{method: grid, flags: {lr: {grid: [0.1]}, learn-start: {grid: [300, 30]}}}",
            "with lr 0.1, learn-start 30: --learn-start 30 is less than one batch of 32.",
        ),
        (
            "{trials: 1, flags: {learn-start: {randint: [30, 300]}}}",
            "with learn-start 30: --learn-start 30 is less than one batch of 32.",
        ),
    ],
)
def test_check_looks_at_values(
    block: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each by itself; the experiment's own flags would do."""
    path = tmp_path / "some.yaml"
    path.write_text(f"{FLAGS}search: {block}\n")
    assert main(["check", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {path}, experiment some {sentence}") and said.count("\n") == 1


def test_values_are_seen_beside_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Naf cannot play the game of the experiment itself, but those of the search."""
    games = "[Pendulum-v1, MountainCarContinuous-v0]"
    block = f"{{method: grid, metric: score, flags: {{agent: {{grid: [naf]}}, game: {{grid: {games}}}}}}}"
    path = tmp_path / "some.yaml"
    path.write_text(f"{FLAGS}search: {block}\n")
    assert main(["check", str(path)]) == 0
    assert "ready." in capsys.readouterr().out
