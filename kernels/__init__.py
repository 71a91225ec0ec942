"""Compiled loops and other work that is written for speed, behind functions with plain names."""
