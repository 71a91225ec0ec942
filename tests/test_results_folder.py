"""A folder of results that cannot be written is refused before anything is played."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

import test_multiple_seed
from args import read_args
from scripts import compare_baselines

CARTPOLE = Path(__file__).parent / "fixtures" / "acb6ace" / "last_model_CartPole-v1_424.pth"
BASELINE = ("--game", "probe:catch", "--agent", "random", "--evaluation-episodes", "2")


def _evaluate(argv: Sequence[str]) -> None:
    test_multiple_seed.main(read_args(argv))


@pytest.mark.parametrize(
    ("program", "main"),
    [(test_multiple_seed, _evaluate), (compare_baselines, compare_baselines.main)],
    ids=["test_multiple_seed", "compare_baselines"],
)
@pytest.mark.parametrize(("place", "reason"), [("file", "File exists"), ("file/below", "Not a directory")])
def test_it_ends_before_playing(
    program: ModuleType,
    main: Callable[[Sequence[str]], None],
    place: str,
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / place
    monkeypatch.setattr(program, "evaluate", lambda *_: pytest.fail("it played"))
    with pytest.raises(SystemExit) as ended:
        main([*BASELINE, "--path-to-results", str(folder)])
    assert ended.value.code == 2 and capsys.readouterr().out == ""
    assert caplog.messages == [
        f"error: Nothing can be written to {folder} ({reason}): check --path-to-results."
    ]


def test_a_comparison_that_cannot_be_kept_is_said_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """It may have taken hours."""
    (tmp_path / "baselines_CartPole-v1.json").mkdir()
    words = ["--game", "CartPole-v1", "--model", str(CARTPOLE), "--evaluation-episodes", "2"]
    with pytest.raises(SystemExit) as ended:
        compare_baselines.main([*words, "--path-to-results", str(tmp_path)])
    assert ended.value.code == 1
    assert caplog.messages[-1].startswith("error: [Errno 21] Is a directory")
    assert json.loads(capsys.readouterr().out)["best_constant"].startswith("constant:")


def test_one_that_is_missing_is_made(tmp_path: Path) -> None:
    _evaluate([*BASELINE, "--path-to-results", str(tmp_path / "a" / "b")])
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["evaluation_probe_catch_random.json"]
