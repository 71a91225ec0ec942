"""Running means of metrics that an update computes in parts."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


class Means:
    """Sums and counts by name, kept on the device."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: Mapping[str, Tensor]) -> None:
        """More numbers of each name, tensors of any shape."""
        for name, numbers in values.items():
            total = numbers.detach().sum()
            self._sums[name] = self._sums[name] + total if name in self._sums else total
            self._counts[name] = self._counts.get(name, 0) + numbers.numel()

    def take(self) -> dict[str, Tensor]:
        """Name -> mean of all numbers so far."""
        return {name: total / self._counts[name] for name, total in self._sums.items()}
