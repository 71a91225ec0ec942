"""Builds the parts of a process from its parameters; shared by the launchers, which parse, build and run."""
