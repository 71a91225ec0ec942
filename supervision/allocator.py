"""Memory that was freed is kept for the next batch, instead of going back to the kernel each time."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""From glibc's <malloc.h>."""
KEPT_BYTES = 1 << 30
"""Larger than any tensor of an update here: 26 MB for IQN's 2,048 rows of 3,136 features."""


def keep_freed_memory() -> None:
    """Tell glibc's malloc to serve large blocks from memory it keeps; other C libraries are left as they are.

    By default a block of more than some 100 KB comes fresh from the kernel, which hands it over page by page,
    2 µs each as it is first touched, and takes it back when it is freed: a batch, a chunk's frames and every
    large tensor of a network pass paid for that anew. An update of specs/atari/rainbow_iqn_cpu.yaml took
    2,900 such faults and 29 ms of processor time so, 50 and 20 ms with this (docs/performance.md).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
