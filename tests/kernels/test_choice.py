"""One switch for all operations that have a compiled loop and a plain twin."""

from __future__ import annotations

import pytest

from kernels import choice
from tests.kernel_choice import using


def test_compiled_loops_are_the_default_and_plain_twins_can_be_asked_for() -> None:
    assert choice.compiled_in_use()
    with using("plain"):
        assert not choice.compiled_in_use()
        with using("compiled"):
            assert choice.compiled_in_use()
        assert not choice.compiled_in_use()
    assert choice.compiled_in_use()


def test_what_is_missing_is_logged_once_and_leaves_plain_operations(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(choice, "_missing", "")
    choice.only_plain("No module named 'numba'")
    choice.only_plain("lz4 has no LZ4_decompress_safe")
    with using("compiled"):
        assert not choice.compiled_in_use()
    (line,) = caplog.messages
    assert line.endswith("No module named 'numba'")
