"""bfloat16 learns what float32 does; `python -m benchmarks.precision` looks at ten times as many batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.harness import recorded_batches, setting_for
from benchmarks.precision import differences
from memory.server.connection import Client

ROOT = Path(__file__).parents[2]
TRAINED = ROOT / "results/kept/ms_pacman/ms_pacman_250127.pth"
WORDS = (
    f"--spec {ROOT}/specs/atari/rainbow_iqn_cpu.yaml --game ms_pacman --memory-capacity 1024 --learn-start 32"
    " --target-update 16 --threads 1"
)


@pytest.mark.parametrize(
    ("agent", "model"),
    [
        pytest.param("iqn", None, marks=pytest.mark.slow),
        ("iqn", TRAINED),
        pytest.param("rainbow", None, marks=pytest.mark.slow),
    ],
)
def test_losses_and_gradients_of_recorded_batches_stay_near(
    agent: str, model: Path | None, client: Client
) -> None:
    """At the same weights, taus and noise, at the start and after 250,000 steps of learning, which is harder;
    the target network is copied twice on the way.
    """
    words = f"{WORDS} --agent {agent}"
    batches = recorded_batches(setting_for(words), client, 10, environments=4, steps=64)
    found = list(differences(words, batches, model))
    assert all(each.is_small for each in found), [(each.loss, each.cosine) for each in found]
    assert any(each.loss > 0 for each in found)  # so that there were two precisions
