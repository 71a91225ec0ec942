"""Results of other snapshots and opponents stay when one of the same name is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import test_multiple_seed
from args import read_args
from evaluation.policies import EpsilonPolicy
from learning.saved.snapshot import save_snapshot
from wiring.evaluating.candidates import snapshot_candidate
from wiring.setting import build_agent, setting_of

NAME = "evaluation_probe_catch.json"
QUICK = "--evaluation-episodes 2 --threads 1 --disable-cuda"
EARLIER = "earlier_evaluation_probe_catch_{}.json"


def snapshot(path: Path, updates: int, game: str = "probe:catch --discount 0.9", seed: int = 1) -> Path:
    """Of an agent that never learned, whatever number of updates it names."""
    words = f"--agent dqn --hidden-size 16 --disable-cuda --seed {seed} --game {game}"
    setting = setting_of(read_args(words.split()))
    agent = build_agent(setting.args, setting.problem, learning=False)
    clocks = {"t_actors": 10 * updates, "t_learner": 10 * updates, "updates": updates}
    weights = {"settings": setting.args.shared(), "acting_weights": agent.acting_weights()}
    path.parent.mkdir(exist_ok=True)
    save_snapshot(path, {**weights, **clocks})
    return path


def evaluate(folder: Path, *words: str | Path) -> None:
    where = ("--path-to-results", folder, *QUICK.split())
    test_multiple_seed.main(read_args([*map(str, (*words, *where))]))


def models(folder: Path) -> dict[str, str]:
    """Of each result in the folder, the snapshot that it names."""
    return {path.name: json.loads(path.read_text())["settings"]["model"] for path in folder.glob("*.json")}


def test_another_snapshot_s_result_stays_and_the_user_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one that has the same path by now, as best_model has. The same snapshot's is written anew."""
    one = snapshot(tmp_path / "one" / "best_model.pth", 100)
    two = snapshot(tmp_path / "two" / "best_model.pth", 100, seed=2)
    folder = tmp_path / "results"
    evaluate(folder, "--model", one)
    evaluate(folder, "--model", one)
    assert models(folder) == {NAME: str(one)} and "another result" not in capsys.readouterr().out
    evaluate(folder, "--model", two)
    assert models(folder) == {NAME: str(two), EARLIER.format(1): str(one)}
    said = f"{folder / NAME} held another result, which is {folder / EARLIER.format(1)} now.\n"
    assert said in capsys.readouterr().out
    snapshot(two, 200)
    evaluate(folder, "--model", two)
    assert models(folder) == {NAME: str(two), EARLIER.format(1): str(one), EARLIER.format(2): str(two)}
    assert json.loads((folder / NAME).read_text())["settings"]["updates"] == 200


def test_a_snapshot_is_known_by_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by how its path was typed: one file has several, and several files may have one."""
    folder = tmp_path / "results"
    for seed, run in enumerate(("one", "two")):
        path = snapshot(tmp_path / run / "best_model.pth", 100, seed=seed)
        monkeypatch.chdir(path.parent)
        for spelling in (path, Path(path.name), f"../{run}/{path.name}"):
            evaluate(folder, "--model", spelling)
    assert models(folder) == {NAME: "../two/best_model.pth", EARLIER.format(1): "../one/best_model.pth"}


@pytest.mark.parametrize("held", [b"mine", b"\xff", b"[]", b"{}", b'{"settings": 3}', b'{"settings": {}}'])
def test_what_is_no_result_stays_too(held: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(held)
    evaluate(tmp_path, "--model", model := snapshot(tmp_path / "last_model.pth", 100))
    assert (tmp_path / EARLIER.format(1)).read_bytes() == held
    assert json.loads((tmp_path / NAME).read_text())["settings"]["model"] == str(model)


@pytest.mark.parametrize(("seeds", "files"), [("11", 1), ("12", 2)])
def test_a_baseline_s_result_is_written_anew(seeds: str, files: int, tmp_path: Path) -> None:
    """But for another seed."""
    for seed in seeds:
        evaluate(tmp_path, "--game", "probe:catch", "--agent", "random", "--seed", seed)
    assert len(models(tmp_path)) == files


@pytest.mark.parametrize(
    "words", ["--seed 7", "--evaluation-episodes 1", "--evaluation-epsilon 0.5", "--max-episode-steps 3"]
)
def test_the_same_snapshot_played_otherwise_stays_too(words: str, tmp_path: Path) -> None:
    """A hundred episodes are not lost to a look at one of them."""
    model = snapshot(tmp_path / "model" / "last_model.pth", 100)
    evaluate(tmp_path, "--model", model)
    first = json.loads((tmp_path / NAME).read_text())
    test_multiple_seed.main(
        read_args(f"--model {model} --path-to-results {tmp_path} {QUICK} {words}".split())
    )
    assert json.loads((tmp_path / EARLIER.format(1)).read_text()) == first
    assert json.loads((tmp_path / NAME).read_text()) != first


def test_a_result_of_an_earlier_version_is_written_anew(tmp_path: Path) -> None:
    """Which had the number of episodes elsewhere."""
    model = snapshot(tmp_path / "model" / "last_model.pth", 100)
    evaluate(tmp_path, "--model", model)
    document = json.loads((tmp_path / NAME).read_text())
    del document["settings"]["evaluation_episodes"]
    (tmp_path / NAME).write_text(json.dumps(document))
    evaluate(tmp_path, "--model", model)
    assert list(models(tmp_path)) == [NAME]


def test_matches_with_another_opponent_stay(tmp_path: Path) -> None:
    model = str(snapshot(tmp_path / "model" / "a.pth", 100, "pettingzoo:tictactoe_v3 --discount -0.9"))
    for opponent in ("random", f"{tmp_path}/model/../model/a.pth", model):
        evaluate(tmp_path, "--model", model, "--against", opponent)
    name = "matches_pettingzoo_tictactoe_v3"
    paths = sorted(tmp_path.glob("*.json"))
    assert [path.name for path in paths] == [f"earlier_{name}_1.json", f"{name}.json"]
    found = [json.loads(path.read_text())["settings"]["against"] for path in paths]
    assert found == ["random", model]


def test_a_snapshot_of_another_network_names_its_flags(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not those that change nothing of a network where a run goes on for longer."""
    model = snapshot(tmp_path / "last_model.pth", 100)
    with pytest.raises(SystemExit) as ended:
        evaluate(tmp_path, "--model", model, "--hidden-size", "32", "--T-max", "7")
    assert ended.value.code == 2
    assert caplog.messages[-1].endswith("; made with --hidden-size 16 (here 32).")


def test_it_plays_as_the_run_was_told_unless_told_otherwise(tmp_path: Path) -> None:
    """So that the command which a run recommends plays by the rules of its spec."""
    words = "probe:catch --discount 0.9 --eval-noise on --evaluation-epsilon 0.5"
    told = snapshot(tmp_path / "one" / "best_model.pth", 100, words)
    results = tmp_path / "results"

    def settings(*words: str) -> tuple[bool, float]:
        evaluate(results, "--model", told, *words)
        played = json.loads((results / NAME).read_text())["settings"]
        return played["eval_noise"], played["evaluation_epsilon"]

    assert isinstance(snapshot_candidate(read_args(["--model", str(told)])).policy, EpsilonPolicy)
    assert settings() == (True, 0.5)
    assert settings("--eval-noise", "off", "--evaluation-epsilon", "0") == (False, 0.0)
