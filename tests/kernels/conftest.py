"""Tests of kernels run as those of networks do."""

from tests.models.conftest import generator, one_thread

__all__ = ["generator", "one_thread"]
