"""Batches whose tensors are on their way to a device before the learner asks for them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents.base import TensorBatch
from agents.parts.devices import StagedBatch, Staging, staged
from agents.parts.learning import batch_to_device
from memory.replay.batch import Batch

CPU = torch.device("cpu")


def _batch(rows: int = 4) -> Batch:
    rng = np.random.default_rng(rows)
    frames = rng.integers(0, 256, (2, rows, 2, 8, 8), dtype=np.uint8)
    numbers = rng.random((3, rows)).astype(np.float32)
    place = np.arange(rows)
    return Batch(frames[0], place, numbers[0], numbers[1], frames[1], numbers[2], place, place)


class _Arrived:
    def __init__(self, tensors: TensorBatch) -> None:
        self._tensors = tensors

    def received(self) -> TensorBatch:
        return self._tensors


def test_a_staged_batch_is_what_it_was_and_gives_what_arrived() -> None:
    batch = _batch()
    tensors = batch_to_device(batch, CPU)
    on_its_way = staged(batch, _Arrived(tensors))
    assert all(one is other for one, other in zip(on_its_way, batch, strict=True))
    assert batch_to_device(on_its_way, CPU) is tensors
    assert batch_to_device(batch, CPU) is not tensors


def test_a_changed_batch_does_not_give_what_arrived_for_the_old_one() -> None:
    """As when an intrinsic bonus is added to its returns."""
    batch = _batch()
    changed = staged(batch, _Arrived(batch_to_device(batch, CPU)))._replace(r_t=batch.r_t + 1)
    assert isinstance(changed, StagedBatch) and changed.in_flight is None
    assert np.array_equal(batch_to_device(changed, CPU).r_t, batch.r_t + 1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_staged_batches_arrive_whole_while_others_are_on_their_way() -> None:
    device = torch.device("cuda")
    staging, batches = Staging(device), [_batch(rows) for rows in (512, 256, 128)]
    for batch, on_its_way in zip(batches, [staging.stage(batch) for batch in batches], strict=True):
        for tensor, expected in zip(
            batch_to_device(on_its_way, device), batch_to_device(batch, CPU), strict=True
        ):
            assert tensor.device.type == "cuda" and torch.equal(tensor.cpu(), expected)
