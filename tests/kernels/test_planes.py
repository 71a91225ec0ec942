"""Frames become images of the same pixels, however they are brought side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from kernels.planes import side_by_side


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 4, 11, 9), (1, 1, 2, 2), (2, 3, 5, 6, 3)])
def test_pixels_keep_their_places(
    shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator
) -> None:
    """Compiled for grey bytes in float32, as PyTorch has it for others; of a cut-out too."""
    frames = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)[:, :, :-1, 1:]
    colours = frames.unsqueeze(-1) if frames.dim() == 4 else frames
    wanted = colours.movedim(-1, 2).flatten(1, 2).to(dtype) / 255
    found = side_by_side(frames, dtype)
    assert found.dtype == dtype and torch.equal(found, wanted)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(side_by_side(frames.to(dtype), dtype) / 255, wanted)


def test_loops_of_torch_compile_are_its_own(generator: torch.Generator) -> None:
    """One graph, which a compiled loop in between would break."""
    frames = torch.randint(0, 256, (2, 4, 6, 6), generator=generator, dtype=torch.uint8)
    graph = torch.compile(side_by_side, backend="eager", fullgraph=True)
    assert torch.equal(graph(frames, torch.float32), side_by_side(frames, torch.float32))


@pytest.fixture(autouse=True, params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """One thread takes the compiled loop, more share PyTorch's."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def test_every_byte_is_its_part_of_white() -> None:
    ramp = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    assert torch.equal(side_by_side(ramp, torch.float32), ramp / 255)
