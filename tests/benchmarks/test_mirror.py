from __future__ import annotations

import re

import pytest
import torch

from benchmarks import mirror


def test_both_sides_are_measured_on_a_processor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.mirror.ROUNDS", 2)
    monkeypatch.setattr("benchmarks.mirror.BATCHES", 2)
    monkeypatch.setattr("benchmarks.mirror.STEPS", 64)
    threads = torch.get_num_threads()
    try:
        assert mirror.main(["--device", "cpu", "--batch-size", "32"]) == 0
    finally:
        torch.set_num_threads(threads)
    said = capsys.readouterr().out
    for name in ("from Redis", "from the mirror"):
        assert re.search(rf"{name}: [\d.]+ ms a batch of 32", said), said
    assert re.search(r"ratio: [\d.]+ \([\d.]+ to [\d.]+\)", said), said


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        mirror.main([])
    assert ended.value.code == 2
    assert "finds no CUDA device here" in capsys.readouterr().err
