"""The lab: spec files, run modes, and what many runs come to."""
