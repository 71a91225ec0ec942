"""What a small run costs: a real run of ours, and the difference of two lengths."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from benchmarks.small import __main__ as small
from benchmarks.small.__main__ import Cost, cost_of, cost_of_a_step, ours
from memory.server.connection import Client


def test_start_and_end_do_not_count() -> None:
    """Ten seconds around 20,000 steps of 1 ms."""
    of_a_step = cost_of_a_step(lambda steps: Cost(10 + steps / 1000, 5 + steps / 2000))
    assert of_a_step.wall == pytest.approx(1000)
    assert of_a_step.processor == pytest.approx(500)


@pytest.mark.slow
def test_a_run_of_ours_is_measured(redis_socket: str, client: Client, tmp_path: Path) -> None:
    """To its end, with the server's time."""
    cost = ours(client, redis_socket, tmp_path, 1_200)
    assert cost.wall > 0 and cost.processor > 0
    assert list(tmp_path.rglob("last_model_CartPole-v1_*.pth"))


def test_a_side_that_fails_is_no_figure() -> None:
    """What it said is kept."""
    with pytest.raises(subprocess.CalledProcessError) as raised:
        cost_of([sys.executable, "-c", "raise SystemExit('no such luck')"])
    assert raised.value.returncode == 1
    assert raised.value.stderr == "no such luck\n"


def test_a_side_that_fails_ends_in_its_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter that imports anything, and runs no script; our side, which comes first, is left out."""
    monkeypatch.setattr(small, "ours", lambda *_: Cost(1, 1))
    sb3 = _program(tmp_path, '[ "$1" = -c ] || { echo "no such luck" >&2; exit 3; }')
    assert small.main(["--sb3", sb3, "--rounds", "2"]) == 1
    said, ending = capsys.readouterr().err.splitlines()[-2:]
    assert said == "no such luck"
    assert ending.startswith("error: it ended with 3: ") and "small/sb3.py" in ending


def test_a_process_that_was_waited_for_is_known_to_have_ended() -> None:
    """No ResourceWarning that it still runs."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        cost_of([sys.executable, "-c", ""])
        gc.collect()
    assert not [str(each.message) for each in said if "subprocess" in str(each.message)]


def test_an_interpreter_without_the_peer_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real one that sees no packages."""
    sb3 = _program(tmp_path, f'exec {sys.executable} -I -S "$@"')
    assert "No module named 'stable_baselines3'" in _refusal(["--sb3", sb3], capsys)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sb3", "/nonexistent"], "--sb3: /nonexistent cannot be run: No such file or directory."),
        (["--sb3", "/bin/true", "--rounds", "0"], "--rounds: 0 is no whole number of 1 or more."),
        (["--sb3", "/bin/true", "--rounds", "x"], "--rounds: x is no whole number of 1 or more."),
    ],
)
def test_mistakes_end_in_a_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _refusal(words, capsys).endswith(sentence)


def _program(folder: Path, script: str) -> str:
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def _refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The last line on stderr of a command that ends with exit code 2."""
    with pytest.raises(SystemExit) as ended:
        small.main(words)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]
