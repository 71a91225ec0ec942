"""Convolutions for pictures within a vector."""

from __future__ import annotations

import pytest
import torch

from models.parts import PartsFeatures, of_parts
from models.torso import Torso

PARTS = (2,), (6, 5, 3), (1,), (40, 36)
SIZE = 2 + 90 + 1 + 1440


@pytest.mark.parametrize("history", [1, 2])
def test_each_picture_passes_its_own_convolutions(history: int, generator: torch.Generator) -> None:
    """What alone in a torso of its own it would become; the numbers are as they were."""
    torso = Torso(of_parts("auto", PARTS), (history, SIZE), "float32", hidden_size=8)
    frames = torch.rand(4, history, SIZE, generator=generator)
    before, colours, between, grey = torch.split(frames, [2, 90, 1, 1440], dim=2)
    features = [before.flatten(1)]
    (parts,) = torso.layers
    assert isinstance(parts, PartsFeatures)
    for number, images in enumerate((colours.reshape(4, -1, 6, 5, 3), grey.reshape(4, -1, 40, 36))):
        alone = Torso(("minatar", "nature")[number], images.shape[1:], "float32", hidden_size=8)
        alone.layers.load_state_dict(parts.pictures[number].state_dict())
        features += [alone(images), between.flatten(1)] if number == 0 else [alone(images)]
    torch.testing.assert_close(torso(frames), torch.cat(features, dim=1))
    assert torso.num_features == torso(frames).shape[1]


def test_bytes_are_divided_by_255(generator: torch.Generator) -> None:
    torso = Torso(of_parts("auto", ((4, 4), (3,))), (1, 19), "uint8", hidden_size=8)
    frames = torch.randint(0, 256, (3, 1, 19), generator=generator, dtype=torch.uint8)
    torch.testing.assert_close(torso(frames), torso.layers(frames.double().div(255).float().flatten(1)))


def test_a_trunk_stands_behind() -> None:
    assert Torso(f"{of_parts('auto', PARTS)}+7", (1, SIZE), "float32", hidden_size=8).num_features == 7


@pytest.mark.parametrize("torso", ["mlp", "flat"])
def test_layers_for_numbers_take_pictures_for_numbers(torso: str) -> None:
    assert of_parts(torso, PARTS) == torso
    assert of_parts("auto", ()) == "auto"


def test_pictures_that_are_too_small_are_refused() -> None:
    with pytest.raises(ValueError, match="needs larger frames"):
        Torso(of_parts("nature", ((6, 6), (1,))), (1, 37), "float32", hidden_size=8)
