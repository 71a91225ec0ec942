"""Agents learn the values that they should: tiny environments, the real pipeline in one process."""
