"""What launchers check before anything starts."""

from __future__ import annotations

import re

import pytest

from agents.base import AgentError
from args import UserError, read_args
from memory.replay.sum_tree import SumTree
from wiring import check_store, sentences_for_errors, setting_of


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--memory-capacity 100 --learn-start 90 --batch-size 128", "cannot fill a batch of 128."),
        (
            "--memory-capacity 40 --chunk-length 64 --learn-start 40",
            "--memory-capacity 40 is less than one chunk",
        ),
        ("--memory-capacity 1000 --learn-start 2000", "--learn-start 2000 exceeds --memory-capacity 1000."),
        ("--learn-start 10", "--learn-start 10 is less than one batch of 32."),
    ],
)
def test_a_replay_holds_what_is_to_be_learned_from(words: str, sentence: str) -> None:
    """An agent that has none takes the same parameters."""
    with pytest.raises(UserError, match=re.escape(sentence)):
        check_store(read_args(words.split()))
    check_store(read_args([*words.split(), "--agent", "a2c"]))


@pytest.mark.parametrize("units", [10**11, 10**20])
def test_a_network_for_which_there_is_no_memory_is_refused(units: int) -> None:
    with pytest.raises(AgentError, match="This network cannot be built: "):
        setting_of(read_args(["--game", "probe:catch", "--hidden-size", str(units)]))


def test_a_replay_for_which_there_is_no_memory_is_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended, sentences_for_errors():
        SumTree(10**15)
    assert ended.value.code == 2 and "There is not enough memory on this machine (" in caplog.text
