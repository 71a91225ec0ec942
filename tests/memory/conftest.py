from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernels import choice


@pytest.fixture(params=choice.KINDS)
def both_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compiled loops, and their plain twins."""
    with choice.using(request.param):
        yield
