"""What happened between s_tm1 and s_t of n-step transitions, for agents that look at every step."""

from __future__ import annotations

from typing import NamedTuple


class Lookahead(NamedTuple):
    """How far transitions reach."""

    multi_step: int  # n
    discount: float  # gamma
