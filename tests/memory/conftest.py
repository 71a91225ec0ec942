from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernels import choice
from tests.kernel_choice import using


@pytest.fixture(params=choice.KINDS)
def both_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compiled loops, and their plain twins."""
    with using(request.param):
        yield
