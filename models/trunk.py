"""A trunk: a layer between torso and head, of one size whatever the torso sees, which games can share."""

from __future__ import annotations

from torch import nn

SEPARATOR = "+"
"""Separates a torso's name from the units of the trunk behind it: "auto+128"."""
NAME = "trunk"
"""Name of the trunk among the layers of its torso."""


def split_name(torso: str) -> tuple[str, int]:
    """The torso's own name, and the units of its trunk, 0 where it has none: "auto+128" -> "auto", 128."""
    own, _, units = torso.partition(SEPARATOR)
    return own, int(units or 0)


def with_trunk(own: str, units: int) -> str:
    """The reverse of `split_name`."""
    return f"{own}{SEPARATOR}{units}" if units else own


def add_trunk(layers: nn.Sequential, num_features: int, units: int) -> None:
    """Put it behind `layers`, whose output is [B, num_features]; before it an entry, where sizes differ."""
    if num_features != units:
        layers.add_module("entry", nn.Sequential(nn.Linear(num_features, units), nn.ReLU()))
    layers.add_module(NAME, nn.Sequential(nn.Linear(units, units), nn.ReLU()))


def trunk_of(network: nn.Module) -> dict[str, nn.Parameter]:
    """The weights of the trunk within a network by their names in it; none where it has no trunk."""
    return {name: weight for name, weight in network.named_parameters() if f".{NAME}." in name}
