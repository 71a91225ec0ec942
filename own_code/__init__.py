"""A user's own environments and agents: imported only if this very process was given them by name.

In: `path/to/file.py:Name` or `module:Name` from the command line, a spec or a Python call (code.py), whose
config dataclass may declare flags (flags.py). Out: a class or function, and the SHA-256 of its file.
"""
