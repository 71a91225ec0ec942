"""Running statistics, and a network behind them."""

from __future__ import annotations

import numpy as np
import torch

from models.moments import NORMALISED_CLIP, NormalisedNetwork, RunningMoments


def test_moments_are_those_of_all_rows_together() -> None:
    rng = np.random.default_rng(0)
    rows = (1e4 + rng.normal(size=(1000, 3)) * [0.1, 1, 10]).astype(np.float32)
    moments = RunningMoments((3,))
    for part in np.split(rows, [1, 1, 400, 990]):
        moments.observe(torch.from_numpy(part))
    assert float(moments.count) == 1000
    np.testing.assert_allclose(moments.mean, rows.astype(np.float64).mean(0), rtol=1e-12)
    np.testing.assert_allclose(moments.std, rows.astype(np.float64).std(0), rtol=1e-8)


def test_moments_with_a_horizon_follow_what_changes() -> None:
    """The weight of what was seen before a change halves with about every 0.7 horizons."""
    rng = np.random.default_rng(0)
    moments, everything = RunningMoments((), horizon=500), RunningMoments(())
    for level in (10.0, 1.0):
        for _ in range(80):
            part = torch.from_numpy(level * (1 + rng.normal(size=50)))
            moments.observe(part), everything.observe(part)
    assert float(moments.count) == 500
    assert abs(float(moments.mean) - 1) < 0.4 and abs(float(moments.std) - 1) < 0.3
    assert float(everything.mean) > 5


def test_what_never_changed_is_whitened_to_nothing() -> None:
    moments = RunningMoments((2,))
    assert moments.mean.tolist() == [0, 0] and moments.std.tolist() == [1, 1]
    moments.observe(torch.tensor([[7, 0], [7, 255]], dtype=torch.uint8))
    assert moments.mean.tolist() == [7, 127.5] and float(moments.std[0]) > 0
    assert ((torch.tensor([7.0, 0.0]) - moments.mean) / moments.std).tolist() == [0, -1]


def test_a_network_gets_frames_of_mean_0_and_deviation_1(generator: torch.Generator) -> None:
    """Every frame of a stack by the same statistics; before the first frame was counted, as they are."""
    network = NormalisedNetwork(torch.nn.Identity(), (3,))
    scales = torch.tensor([1, 20, 0.1])
    frames = torch.tensor([5.0, -2.0, 0.0]) + torch.randn(1000, 3, generator=generator) * scales
    near = frames[:4].view(2, 2, 3) / 20
    assert torch.equal(network(near), near)
    network.frames.observe(frames)
    x = network(frames.view(500, 2, 3)).view(1000, 3)
    assert x.dtype == torch.float32
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(x.std(0, correction=0), 1, rtol=1e-5)
    assert network(torch.full((1, 2, 3), 1e6)).max() == NORMALISED_CLIP


def test_a_network_behind_statistics_takes_bytes() -> None:
    network = NormalisedNetwork(torch.nn.Identity(), (2,))
    rows = torch.tensor([[0, 100], [200, 100]], dtype=torch.uint8)
    network.frames.observe(rows)
    assert network(rows.unsqueeze(1)).squeeze(1).tolist() == [[-1, 0], [1, 0]]
