from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.harness import MedianRange
from benchmarks.report import GOALS, Figure, Goal, write_figures


def test_targets_know_their_direction_and_the_processor() -> None:
    ratio, seconds = Goal("", 3, 1.2), Goal("", 2, at_most=True)
    assert ratio.is_met(3, bfloat16=True) and not ratio.is_met(2.9, bfloat16=True)
    assert ratio.is_met(1.2, bfloat16=False)
    assert seconds.is_met(2, True) and not seconds.is_met(2.1, True)
    assert ratio.has_lost_half(1.4, True) and not ratio.has_lost_half(1.6, True)
    assert not Goal("", 3, reached=2).has_lost_half(1.1, True) and Goal("", 3, reached=4).has_lost_half(
        1.4, True
    )
    assert seconds.has_lost_half(4.1, True) and not seconds.has_lost_half(3.9, True)
    assert Goal("").is_met(0, True) is None


def test_the_documents_table_comes_from_the_json(tmp_path: Path) -> None:
    figures = [Figure(key, MedianRange(2.0, 1.0, 3.0), {"ours": MedianRange(9.0, 8.0, 9.5)}) for key in GOALS]
    write_figures(tmp_path / "figures.json", figures, 123, ["run.py", "all"])
    measured = json.loads((tmp_path / "figures.json").read_text())
    assert {"bf16_units", "avx2"} <= measured["cpu_features"].keys()
    before = report.DOCUMENT.read_text(encoding="utf-8")
    after = report.updated(before, measured)
    assert all(f"| `{key}` |" in after for key in GOALS)
    assert "| `loop.learner_wait` |" in after and "≤ 0.02 | **no** |" in after
    assert report.updated(after, measured) == after
    with pytest.raises(ValueError, match="once each"):
        report.updated("", measured)


@pytest.mark.parametrize("content", [None, "no json", "{}", "[]"])
def test_a_file_without_figures_is_named(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, before = tmp_path / "figures.json", report.DOCUMENT.read_bytes()
    if content is not None:
        file.write_text(content)
    with pytest.raises(SystemExit) as end:
        report.main([str(file)])
    error = capsys.readouterr().err
    assert end.value.code == 2 and "figures.json" in error and "Traceback" not in error
    assert report.DOCUMENT.read_bytes() == before
