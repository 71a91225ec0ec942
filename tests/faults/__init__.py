"""Faults injected into a run of real processes, and what must hold in spite of them (tests/chaos.py)."""
