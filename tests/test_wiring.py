"""What launchers check before anything starts."""

from __future__ import annotations

import re

import pytest

from args import UserError, read_args
from wiring import check_store


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
