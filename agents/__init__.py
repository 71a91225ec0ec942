"""Agents: one file per algorithm, one registry, pure loss functions."""
