"""What the replay hands to an agent: one batch of n-step transitions."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray


class Batch(NamedTuple):
    """B transitions, ready for an update.

    `discount_t` is gamma**k for the k <= n steps really taken and 0 at a terminal, so that
    terminals, truncations and short tails need no special case: target = r_t + discount_t * value(s_t).
    """

    s_tm1: NDArray[Any]  # [B, H, *frame] uint8 images or float32 vectors
    a_tm1: NDArray[Any]  # [B] int64, or [B, A] float32
    r_t: NDArray[Any]  # [B] float32, n-step return
    discount_t: NDArray[Any]  # [B] float32
    s_t: NDArray[Any]  # [B, H, *frame], k steps after s_tm1
    weights: NDArray[Any]  # [B] float32, importance weights, at most 1
    leaf: NDArray[Any]  # [B] int64, where the new priority goes back to
    chunk_id: NDArray[Any]  # [B] int64, what that place must still hold for the priority to count
    next_frames: NDArray[Any] | None = None  # [B, n, *frame] newest after each of k <= n steps, then 0
    step_discounts: NDArray[Any] | None = None  # [B, n] float32, gamma**j of the k steps really taken, then 0
    game: NDArray[Any] | None = None  # [B] int64, all alike: which, where a run has several kinds


class Lookahead(NamedTuple):
    """Given these, batches contain the frames between s_tm1 and s_t."""

    multi_step: int  # n
    discount: float  # gamma
