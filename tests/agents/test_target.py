"""Target networks that follow by Polyak averaging; periodic ones: test_update.py."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from agents.naf import PolyakTarget


def test_polyak_average_is_its_formula() -> None:
    online = nn.Linear(1, 1, bias=False)
    nn.init.constant_(online.weight, 1.0)
    target = PolyakTarget(online, share=0.1)
    nn.init.constant_(online.weight, 3.0)
    expected = 1.0
    for step in range(5):
        target.follow(t_learner=4 * step)
        expected = 0.9 * expected + 0.1 * 3.0
        assert float(target.network.weight) == pytest.approx(expected)
    assert float(online.weight.detach()) == 3.0 and not target.network.weight.requires_grad
    target.copy()
    assert torch.equal(target.network.weight, online.weight)


def test_a_share_of_all_is_a_copy() -> None:
    online = nn.Linear(3, 2)
    target = PolyakTarget(online, share=1.0)
    with torch.no_grad():
        for parameter in online.parameters():
            parameter.add_(1.0)
    target.follow(0)
    torch.testing.assert_close(target.network.state_dict(), online.state_dict())
