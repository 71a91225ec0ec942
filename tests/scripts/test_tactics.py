"""What a snapshot sees at connect four."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.connect_four_tactics import main


def test_a_snapshot_that_is_not_there_is_one_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "none.pth")])
    assert ended.value.code == 2
    assert caplog.messages == [f"error: There is no snapshot {tmp_path}/none.pth."]
